"""Change-data-capture messages as Avro, and back, exactly.

    import cdcavro

    payload = cdcavro.encode(text, "oms_canal")    # JSON text to Avro
    text = cdcavro.decode(payload, "oms_canal")    # and the same JSON value back
    format = cdcavro.sniff(text)                   # which format is this?
    schema = cdcavro.load_schema("oms_canal").json # to hand to Spark or a registry

`cdcavro.spark` does the same on Spark columns; `cdcavro --help` on files.
"""

from cdcavro.convert import FORMATS, decode, encode, load_schema
from cdcavro.errors import (
    CdcAvroError,
    FileError,
    JobError,
    MessageError,
    PayloadError,
    ResolutionError,
    SchemaError,
    SetupError,
    StructureError,
    TextError,
    UnknownFormatError,
    UnknownMessageError,
)
from cdcavro.schema import Schema, parse_schema
from cdcavro.sniff import sniff

__all__ = [
    "FORMATS",
    "CdcAvroError",
    "FileError",
    "JobError",
    "MessageError",
    "PayloadError",
    "ResolutionError",
    "Schema",
    "SchemaError",
    "SetupError",
    "StructureError",
    "TextError",
    "UnknownFormatError",
    "UnknownMessageError",
    "decode",
    "encode",
    "load_schema",
    "parse_schema",
    "sniff",
]
