"""The pipeline from topics and files to lake tables, whatever runs it."""
