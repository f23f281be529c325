"""Exact JSON text, numbers, instants and SQL values, with no digit lost; independent of Avro and of all formats."""
