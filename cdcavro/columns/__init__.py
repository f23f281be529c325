"""Columns: how a declared type holds its values in Avro, exactly or not at all."""
