"""Payloads of one schema translated into payloads of another."""

from cdcavro.avro.translation.schema_pair import translator

__all__ = ["translator"]
