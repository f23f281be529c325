"""Exact values: JSON text, numbers, instants and SQL's spellings, without a digit lost. Nothing of Avro, nothing of messages."""
