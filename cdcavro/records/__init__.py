"""What generated records run on: a codec made from their schema, and the classes that they are derived from.

A module that `cdcavro generate` wrote holds classes and its schema as text; nothing else of a schema
becomes code. `Codec` reads the schema once, when a record is first read or written.
"""

from cdcavro.records.codec import AvroRecord, Codec
from cdcavro.records.shapes import Branch, FixedBytes

__all__ = ["AvroRecord", "Branch", "Codec", "FixedBytes"]
