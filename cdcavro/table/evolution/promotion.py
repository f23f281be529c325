"""Comparison of columns' Avro types: which can be read as which, and what happens to a default."""

from __future__ import annotations

import json
from typing import Any, Final

from cdcavro.avro.resolution import resolve
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.types import PRIMITIVES
from cdcavro.errors import ResolutionError
from cdcavro.exact.members import ABSENT

LOGICAL: Final = "logicalType"
_LOSSES: Final = {
    ("int", "float"): ": values beyond 2^24 are rounded",
    ("long", "float"): ": values beyond 2^24 are rounded",
    ("long", "double"): ": values beyond 2^53 are rounded",
}
_MEANING: Final = ("type", LOGICAL, "precision", "scale")


def without_attributes(avro: Any) -> Any:
    """Return a type, as a JSON value, without the attributes that do not affect its values.

    >>> without_attributes({"type": "string", "avro.java.string": "String"})
    'string'
    """
    if not isinstance(avro, dict) or not _is_primitive(avro):
        return avro
    meaning = {key: avro[key] for key in _MEANING if key in avro}
    if meaning.get(LOGICAL) == "decimal" and meaning.get("scale") == 0:
        del meaning["scale"]
    return meaning if LOGICAL in meaning else meaning["type"]


def is_promotion(old: Any, new: Any) -> bool:
    """Return whether values of one Avro type can be read as another with the same meaning.

    These are Avro's promotions, except where a logical type changes the meaning (the bytes of a decimal are not text),
    and from bytes to text: a single value that is no UTF-8 could not be read. A decimal can be read as one with more
    digits and the same scale.

    >>> is_promotion("int", "long"), is_promotion({"type": "int", "logicalType": "date"}, "long")
    (True, False)
    >>> is_promotion("string", "bytes"), is_promotion("bytes", "string")
    (True, False)
    """
    if not (_is_primitive(old) and _is_primitive(new)):
        return False
    logical = [avro.get(LOGICAL) if isinstance(avro, dict) else None for avro in (old, new)]
    if logical[0] != logical[1] or (without_attributes(old), without_attributes(new)) == ("bytes", "string"):
        return False
    try:
        resolve(parse_schema(json.dumps(old)).root, parse_schema(json.dumps(new)).root)
    except ResolutionError:
        return False
    return logical[0] in (None, "decimal")


def _is_primitive(avro: Any) -> bool:
    name = avro.get("type") if isinstance(avro, dict) else avro
    return isinstance(name, str) and name in PRIMITIVES


def promoted(default: Any, old: Any, new: Any) -> Any:
    """Return a default in a schema's JSON after promotion to a new type; `ABSENT` if the type cannot have it.

    In JSON, bytes are written as ISO-8859-1 characters, a string as itself.

    >>> promoted("\u00e9", "string", "bytes") == "\u00c3\u00a9"
    True
    """
    pair = without_attributes(old), without_attributes(new)
    if not isinstance(default, str) or pair not in (("string", "bytes"), ("bytes", "string")):
        return default
    if pair[1] == "bytes":
        return default.encode().decode("iso-8859-1")
    try:
        return default.encode("iso-8859-1").decode()
    except UnicodeDecodeError:
        return ABSENT


def promotion_loss(old: Any, new: Any) -> str:
    """Return what a promotion loses, as the end of a sentence; empty for most promotions."""
    return _LOSSES.get((avro_label(old), avro_label(new)), "")


def avro_label(avro: Any) -> str:
    """Return the name of an Avro type for use in a sentence.

    >>> avro_label({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2})
    'decimal(10,2)'
    """
    if isinstance(avro, list):
        return f"[{', '.join(map(avro_label, avro))}]"
    if not isinstance(avro, dict):
        return str(avro)
    if avro.get(LOGICAL) == "decimal":
        return f"decimal({avro.get('precision')},{avro.get('scale', 0)})"
    return str(avro.get(LOGICAL) or avro.get("name") or avro.get("type"))
