"""Exact conversion of change-data-capture messages to Avro and back.

    import cdcavro

    payload = cdcavro.encode(text, "oms_canal")    # JSON text to Avro
    text = cdcavro.decode(payload, "oms_canal")    # and the same JSON value back
    format = cdcavro.sniff(text)                   # the format of a message
    schema = cdcavro.load_schema("oms_canal").json # for Spark or a registry

`cdcavro.spark` does the same with Spark columns, and the command `cdcavro` with files (see `cdcavro --help`).
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from cdcavro.avro import Schema, Verdict, parse_schema, verdict
from cdcavro.change import Change
from cdcavro.change.order import order_key, shard
from cdcavro.errors import (
    CdcAvroError,
    DdlError,
    FileError,
    IncompatibleError,
    JobError,
    MessageError,
    MisfitError,
    OrderError,
    PayloadError,
    RegistryError,
    ResolutionError,
    SchemaError,
    SetupError,
    StructureError,
    TextError,
    UnknownFormatError,
    UnknownMessageError,
    UnknownSchemaError,
)
from cdcavro.exact.numbers import ExactNumber
from cdcavro.transcoding import Loss, Transcoded
from cdcavro.transcoding.mapping import from_changes, to_changes
from cdcavro.transcoding.transcoder import transcode
from cdcavro.wire.formats import FORMATS, decode, encode, load_schema
from cdcavro.wire.sniff import sniff

if _TYPE_CHECKING:
    from cdcavro.table import Tables, TableSchema, evolve, table_schema_of

__all__ = [
    "FORMATS",
    "CdcAvroError",
    "Change",
    "DdlError",
    "ExactNumber",
    "FileError",
    "IncompatibleError",
    "JobError",
    "Loss",
    "MessageError",
    "MisfitError",
    "OrderError",
    "PayloadError",
    "RegistryError",
    "ResolutionError",
    "Schema",
    "SchemaError",
    "SetupError",
    "StructureError",
    "TableSchema",
    "Tables",
    "TextError",
    "Transcoded",
    "UnknownFormatError",
    "UnknownMessageError",
    "UnknownSchemaError",
    "Verdict",
    "decode",
    "encode",
    "evolve",
    "from_changes",
    "load_schema",
    "order_key",
    "parse_schema",
    "shard",
    "sniff",
    "table_schema_of",
    "to_changes",
    "transcode",
    "verdict",
]

# Names from `cdcavro.table`, whose import takes time that most programs need not spend.
_LATER = frozenset({"TableSchema", "Tables", "evolve", "table_schema_of"})


def __getattr__(name: str) -> object:
    """Return a public name of `cdcavro.table`, which is imported when it is first needed."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module("cdcavro.table"), name)
