"""Exact conversion of change-data-capture messages to Avro and back.

    import cdcavro

    payload = cdcavro.encode(text, "oms_canal")    # JSON text to Avro
    text = cdcavro.decode(payload, "oms_canal")    # and the same JSON value back
    format = cdcavro.sniff(text)                   # the format of a message
    schema = cdcavro.load_schema("oms_canal").json # for Spark or a registry

`cdcavro.spark` does the same with Spark columns, and the command `cdcavro` with files (see `cdcavro --help`).
"""

from importlib import import_module as _import_module
from threading import RLock as _RLock
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

# The modules of public names, which are imported with the first that is needed: a command whose import takes a moment can
# be interrupted in it.
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
# Names whose import takes time that most programs need not spend.
_SLOW = "cdcavro.table"
_LOCK = _RLock()


def __getattr__(name: str) -> object:
    """Return a public name of the package, or a module of it: with the first that is needed, all are imported.

    One thread at a time does so: several that begin at different modules would find some of them half imported.
    """
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _LOCK:
        for home, names in _HOMES.items():
            if home != _SLOW or name in names or f"cdcavro.{name}" == home:
                module = _import_module(home)
                globals().update({one: getattr(module, one) for one in names})
    try:
        return globals()[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    """Return the names of the package, also those that are still to be imported."""
    return sorted({*globals(), *__all__})
