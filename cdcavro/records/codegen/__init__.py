"""Generated code: typed records for a schema, and what Spark makes of it."""

from cdcavro.records.codegen.generate import KINDS, NamedSchema, generate

__all__ = ["KINDS", "NamedSchema", "generate"]
