"""Validation of a message: converted into a payload and back, it must be the same JSON value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdcavro.errors import StructureError
from cdcavro.exact import jsontext
from cdcavro.exact.diff import differences

if TYPE_CHECKING:
    from cdcavro.wire.format import Format


def validate(message: bytes | str, format: Format) -> dict[str, Any]:
    """Return the record of a message whose payload decodes to exactly the same JSON value.

    Raises `TextError`, `StructureError` (also if the value differs) and `PayloadError`.
    """
    record = format.read(format.encode(message))
    first = next(differences(jsontext.parse(message), jsontext.parse(jsontext.render(record))), None)
    if first is not None:
        raise StructureError("the same value back", "another one", pointer=first[0], format=format.name)
    return record
