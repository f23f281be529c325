"""Outputs of a pipeline: what is written to lakes, topics and files, whatever runs it, and where rejects go."""
