"""The runtime of generated records: their base classes, and a codec built from their schema.

A module written by `cdcavro generate` contains classes and the schema as text; nothing else in the schema
becomes code. `Codec` parses the schema once, when a record is first read or written.
"""

from cdcavro.records.codec import AvroRecord, Codec
from cdcavro.records.shapes import Branch, FixedBytes

__all__ = ["AvroRecord", "Branch", "Codec", "FixedBytes"]
