"""Generated code: typed records for a schema, or the types that Spark reads it as."""

from cdcavro.records.codegen.generate import KINDS, NamedSchema, generate

__all__ = ["KINDS", "NamedSchema", "generate"]
