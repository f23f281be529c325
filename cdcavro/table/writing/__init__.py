"""Rows of tables as Avro data."""
