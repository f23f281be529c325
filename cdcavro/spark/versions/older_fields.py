"""Older fields of columns on Spark: their values in the type of the field that took over, where that is exact.

The rules are those of `cdcavro.table.older_fields`, as expressions that the JVM evaluates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as sf

from cdcavro.table.older_fields import DATE_TEXT, LOCAL, MAX_SURE, NUMBER_TEXT, heirs, is_fillable, kind_of
from cdcavro.table.schema import avro_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column

# Holds every number that `NUMBER_TEXT` matches.
_ANY_NUMBER: Final = "decimal(38,18)"
# Python holds no days before it.
_FIRST_DAY: Final = "0001-01-01"
_TYPES: Final = {
    **{name: name for name in ("boolean", "int", "double", "string", "date")},
    "long": "bigint",
    LOCAL: "timestamp_ntz",
}


def has_older(fields: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a row's record, given its fields as JSON values, has older fields that others took over from."""
    return bool(heirs((field["name"], field) for field in fields))


def filled(row: Column, fields: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Column:
    """Return the fields of a row that have these names, the newer ones with the values of the older ones where exact.

    `fields` are the fields of the row's record as JSON values, older ones among them. Null stays null.
    """
    types = {field["name"]: avro_of(dict(field)) for field in fields}
    older = heirs((field["name"], field) for field in fields)

    def field_of(name: str) -> Column:
        fitting = [old for old in older.get(name, ()) if is_fillable(types[old], types[name])]
        values = [_value(row.getField(old), types[old], types[name]) for old in fitting]
        return sf.coalesce(row.getField(name), *values) if values else row.getField(name)

    return sf.when(row.isNotNull(), sf.struct(*[field_of(name).alias(name) for name in names]))


def _value(value: Column, old: Any, new: Any) -> Column:
    """Return a value of an older field in the newer type, null if it cannot be that exactly."""
    if kind_of(old) == kind_of(new) != "decimal":
        return value
    if kind_of(new) == "string":
        return _text(value, old)
    made = _try_cast(value, _name(new))
    if kind_of(old) == "string" and kind_of(new) == "date":
        is_day = (made.cast("string") == value) & (made >= sf.lit(_FIRST_DAY).cast("date"))
        return sf.when(value.rlike(rf"\A{DATE_TEXT}\z") & is_day, made)
    if kind_of(old) == "string":
        is_same = _try_cast(made, _ANY_NUMBER) == _try_cast(value, _ANY_NUMBER)
        return sf.when(value.rlike(rf"\A{NUMBER_TEXT}\z") & is_same, made)
    # What becomes the same value again on the way back is exact.
    is_exact = _try_cast(made, _name(old)) == value
    if "double" in (kind_of(old), kind_of(new)):
        is_exact &= value.between(-MAX_SURE, MAX_SURE)
    return sf.when(is_exact, made)


def _try_cast(value: Column, name: str) -> Column:
    """Return a value in another type, null or a value that differs where that does not hold it.

    Spark before 4.0 casts so, unless it is in ANSI mode, in which such a value fails the job.
    """
    # Of a Column itself, any name is an attribute: a field of its value.
    return value.try_cast(name) if hasattr(type(value), "try_cast") else value.cast(name)


def _text(value: Column, old: Any) -> Column:
    if kind_of(old) == "bytes":
        # What is no UTF-8 comes back as other bytes.
        made = value.cast("string")
        return sf.when(sf.encode(made, "UTF-8") == value, made)
    if kind_of(old) != "decimal":
        return value.cast("string")
    # A cast spells small decimals with an exponent, unless Spark is in ANSI mode.
    scale = old.get("scale", 0)
    digits = "0" * max(old["precision"] - scale, 1) + ("." + "0" * scale if scale else "")
    return sf.regexp_replace(sf.trim(sf.to_char(value, sf.lit(f"MI{digits}"))), "^(-?)0+(?=[0-9])", "$1")


def _name(avro: Any) -> str:
    if kind_of(avro) == "decimal":
        return f"decimal({avro['precision']},{avro.get('scale', 0)})"
    return _TYPES[kind_of(avro)]
