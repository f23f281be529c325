"""Avro types of columns compared: which read as which, and what becomes of a default on the way."""

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
    """Return a type without the attributes that change no value.

    >>> without_attributes({"type": "string", "avro.java.string": "String"})
    'string'
    """
    if not isinstance(avro, dict) or not _is_primitive(avro):
        return avro
    made = {key: avro[key] for key in _MEANING if key in avro}
    if made.get(LOGICAL) == "decimal" and made.get("scale") == 0:
        del made["scale"]
    return made if LOGICAL in made else made["type"]


def is_promotion(old: Any, new: Any) -> bool:
    """Return whether values of one Avro type read as another, as they are.

    Avro's promotions, but not of what a logical type means something else in: the bytes of a decimal
    are no text. A decimal reads as one of more digits and the same scale.

    >>> is_promotion("int", "long"), is_promotion({"type": "int", "logicalType": "date"}, "long")
    (True, False)
    """
    if not (_is_primitive(old) and _is_primitive(new)):
        return False
    logical = [one.get(LOGICAL) if isinstance(one, dict) else None for one in (old, new)]
    if logical[0] != logical[1]:
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
    """Return a default, as a schema's JSON states it, as the type it is promoted to; `ABSENT` where it is none.

    Bytes stand there as characters of ISO-8859-1, a string as itself.

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
    """Say what a promotion loses, behind a sentence; nothing for most."""
    return _LOSSES.get((avro_label(old), avro_label(new)), "")


def avro_label(avro: Any) -> str:
    """Name an Avro type in a sentence.

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
