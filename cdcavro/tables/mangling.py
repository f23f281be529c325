"""Names of tables and columns as names of Avro, and back.

Avro's names are `[A-Za-z_][A-Za-z0-9_]*`; names in messages are anything. A name that Avro can hold
stays as it is. In any other, each character that does not fit is written `_x` + its code in
hexadecimal + `_`; so is an underscore that would read as the beginning of such a group. So no two
names give one, and each comes back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cdcavro.errors import StructureError, shown
from cdcavro.types import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_LENGTH: Final = 255
_RESERVED: Final = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed", "error", "request"}
_UNFIT: Final = re.compile(r"_(?=x[0-9a-f]*[^A-Za-z0-9])|[^A-Za-z0-9_]|^[0-9]|^\Z")
_EMPTY: Final = "_x_"
_GROUP: Final = re.compile(r"_x([0-9a-f]{1,5}|10[0-9a-f]{4})_|_x_[0-9]+\Z")


def mangle(name: str, taken: Collection[str] = ()) -> str:
    """Give a name as one of Avro's.

    Avro's own words (`string`, `null`, …) are written with a group in front. `taken` are names in
    Avro's form that the result must differ from, in capitals or not, since Spark does not tell those
    apart: where it would not, all letters become groups; and where that is taken too, `_x_2`, `_x_3`
    and so on stand behind. Raises `StructureError` for a name of more than 255 characters.

    >>> mangle("customer_id"), mangle("we ird"), mangle("1st"), mangle("string")
    ('customer_id', 'we_x20_ird', '_x31_st', '_x73_tring')
    >>> mangle("ID", {"id"}), mangle("id", {"id"})
    ('_x49__x44_', 'id_x_2')
    """
    if len(name) > MAX_LENGTH:
        raise StructureError(f"a name of at most {MAX_LENGTH} characters", f"{shown(name)} of {len(name)}")
    made = _UNFIT.sub(_group, name) or _EMPTY
    if name in _RESERVED:
        made = _group_of(name[0]) + name[1:]
    lowered = {one.lower() for one in taken}
    if made.lower() not in lowered:
        return made
    if made not in taken:
        apart = "".join(_group_of(char) if char.isalpha() or char == "_" else char for char in name)
        apart = re.sub(r"[^A-Za-z0-9_]|^[0-9]", _group, apart)
        if apart.lower() not in lowered:
            return apart
    number = 2
    while f"{made}_x_{number}".lower() in lowered:
        number += 1
    return f"{made}_x_{number}"


def unmangle(name: str) -> str:
    """Undo `mangle`.

    >>> unmangle("we_x20_ird"), unmangle("id_x_2")
    ('we ird', 'id')
    """
    if name == _EMPTY:
        return ""
    return _GROUP.sub(lambda found: chr(int(found[1], 16)) if found[1] else "", name)


def _group(found: re.Match[str]) -> str:
    return _group_of(found[0]) if found[0] else _EMPTY


def _group_of(char: str) -> str:
    return f"_x{ord(char):x}_"
