"""Column types: which Avro type holds a declared SQL type, and how each value is converted to it."""
