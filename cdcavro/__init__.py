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

if _TYPE_CHECKING:
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
    from cdcavro.table import Tables, TableSchema, evolve, table_schema_of
    from cdcavro.transcoding import Loss, Transcoded
    from cdcavro.transcoding.mapping import from_changes, to_changes
    from cdcavro.transcoding.transcoder import transcode
    from cdcavro.wire.formats import FORMATS, decode, encode, load_schema
    from cdcavro.wire.sniff import sniff

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

# The module of each public name, which is imported when the name is first needed: a command whose import takes a moment can
# be interrupted in it, and what is not needed is not imported.
_HOMES = {
    "cdcavro.avro": ("Schema", "Verdict", "parse_schema", "verdict"),
    "cdcavro.change": ("Change",),
    "cdcavro.change.order": ("order_key", "shard"),
    "cdcavro.errors": (
        "CdcAvroError",
        "DdlError",
        "FileError",
        "IncompatibleError",
        "JobError",
        "MessageError",
        "MisfitError",
        "OrderError",
        "PayloadError",
        "RegistryError",
        "ResolutionError",
        "SchemaError",
        "SetupError",
        "StructureError",
        "TextError",
        "UnknownFormatError",
        "UnknownMessageError",
        "UnknownSchemaError",
    ),
    "cdcavro.exact.numbers": ("ExactNumber",),
    "cdcavro.table": ("Tables", "TableSchema", "evolve", "table_schema_of"),
    "cdcavro.transcoding": ("Loss", "Transcoded"),
    "cdcavro.transcoding.mapping": ("from_changes", "to_changes"),
    "cdcavro.transcoding.transcoder": ("transcode",),
    "cdcavro.wire.formats": ("FORMATS", "decode", "encode", "load_schema"),
    "cdcavro.wire.sniff": ("sniff",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Return a public name of the package, whose module is imported when it is first needed, or that module itself."""
    if f"cdcavro.{name}" in _HOMES:
        return _import_module(f"cdcavro.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    """Return the names of the package, also those that are still to be imported."""
    return sorted({*globals(), *__all__})
