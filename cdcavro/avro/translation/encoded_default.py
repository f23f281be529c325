"""The encoded defaults of fields, for payloads of writers that lack them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdcavro.avro.binary import pack_float
from cdcavro.avro.buffer import Buffer
from cdcavro.avro.defaults import default_branch
from cdcavro.avro.logical import value_check
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union
from cdcavro.errors import PayloadError, SchemaError

if TYPE_CHECKING:
    from cdcavro.avro.steps import ReadRecord
    from cdcavro.avro.types import Field


def encoded_defaults(step: ReadRecord, reader: Record) -> list[bytes]:
    """Return, for each of a reader's fields, its default as Avro data, and no bytes where the writer has the field.

    Raises `SchemaError` for a default that is no value of its logical type.
    """
    lacking = {field.name for field in step.defaults}
    return [_encoded(field) if field.name in lacking else b"" for field in reader.fields]


def _encoded(field: Field) -> bytes:
    out = Buffer()
    try:
        _write(out, field.type, field.default)
    except (PayloadError, OverflowError) as error:
        reason = error.reason if isinstance(error, PayloadError) else "no float of 32 bits"
        raise SchemaError(field.name, f"the default: {reason}") from error
    return out.taken()


def _write(out: Buffer, declared: Type, value: Any) -> None:
    match declared:
        case Primitive() | Fixed():
            _write_datum(out, declared, value)
        case Enum(symbols=symbols):
            out.write_long(symbols.index(value))
        case Array(items):
            out.write_long(len(value))
            for item in value:
                _write(out, items, item)
            _end(out, value)
        case Map(values):
            out.write_long(len(value))
            for name, item in value.items():
                out.write_string(name)
                _write(out, values, item)
            _end(out, value)
        case Union(branches):
            branch = default_branch(declared, value)
            out.write_long(branches.index(branch))
            _write(out, branch, value)
        case Record(fields=fields):
            for field in fields:
                _write(out, field.type, value.get(field.name, field.default))
        case _:
            raise SchemaError("$", f"{type(declared).__name__} is no type")


def _end(out: Buffer, value: Any) -> None:
    if value:
        out.write_long(0)


def _write_datum(out: Buffer, declared: Primitive | Fixed, value: Any) -> None:
    name = declared.name if isinstance(declared, Primitive) else "fixed"
    datum = value.encode("latin-1") if name in ("bytes", "fixed") else value
    check = value_check(declared)
    if check is not None:
        check(datum)
    match name:
        case "null":
            return
        case "boolean":
            out.append(int(datum))
        case "int" | "long":
            out.write_long(datum)
        case "float":
            out.write_raw(pack_float(float(datum)))
        case "double":
            out.write_double(float(datum))
        case "string":
            out.write_string(datum)
        case "bytes":
            out.write_long(len(datum))
            out.write_raw(datum)
        case "fixed":
            out.write_raw(datum)
        case _:
            raise SchemaError("$", f"no default for {name}")
