"""The data source `cdcavro`: lines of files as rows with their payloads, by Spark's Python data source API."""
