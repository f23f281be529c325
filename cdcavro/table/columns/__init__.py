"""Column types: what Avro type holds a declared SQL type, and how each value becomes one."""
