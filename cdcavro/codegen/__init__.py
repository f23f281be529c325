"""Generated code: typed records for a schema, and what Spark makes of it."""

from cdcavro.codegen.modules import KINDS, NamedSchema, generate

__all__ = ["KINDS", "NamedSchema", "generate"]
