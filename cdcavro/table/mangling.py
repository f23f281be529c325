"""Names of tables and columns as names of Avro, and back.

Avro's names are `[A-Za-z_][A-Za-z0-9_]*`; names in messages are anything. A name that Avro can hold
stays as it is. In any other, each character that does not fit is written `_x` + its code in
hexadecimal + `_`; so is an underscore that would read as the beginning of such a group. So no two
names give one, and each comes back.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from cdcavro.avro.types import PRIMITIVES
from cdcavro.errors import StructureError, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LENGTH: Final = 255
_RESERVED: Final = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed", "error", "request"}
_UNFIT: Final = re.compile(r"_(?=x[0-9a-f]*[^A-Za-z0-9])|[^A-Za-z0-9_]|^[0-9]|^\Z")
_EMPTY: Final = "_x_"
_GROUP: Final = re.compile(r"_x([0-9a-f]{1,5}|10[0-9a-f]{4})_|_x_[0-9]+\Z")


class Taken:
    """Names in Avro's form that no other may have, in capitals or not, since Spark does not tell those apart.

    >>> taken = Taken(["id"])
    >>> taken.give("ID"), taken.give("id"), taken.give("name")
    ('_x49__x44_', 'id_x_2', 'name')
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = set(names)
        self._lowered = Counter(one.lower() for one in self._names)

    def __len__(self) -> int:
        return len(self._names)

    def give(self, name: str, *, own: Iterable[str] = ()) -> str:
        """Give a name in Avro's form, which is taken from now on.

        `own` are those that whoever it is given to has had, and may have again. Raises as `mangle`.
        """
        made = mangle(name)
        for one in own:
            self._release(one)
        if made.lower() in self._lowered:
            made = self._apart(name, made)
        for one in (*own, made):
            self.add(one)
        return made

    def add(self, made: str) -> None:
        """Take a name that is in Avro's form already."""
        if made not in self._names:
            self._names.add(made)
            self._lowered[made.lower()] += 1

    def _release(self, made: str) -> None:
        self._names.remove(made)
        self._lowered[made.lower()] -= 1
        if not self._lowered[made.lower()]:
            del self._lowered[made.lower()]

    def _apart(self, name: str, made: str) -> str:
        """Give a name with all letters as groups; where it is taken itself, or that is too, with a number behind it."""
        if made not in self._names:
            spelled = "".join(_group_of(one) if one.isalpha() or one == "_" else one for one in name)
            spelled = re.sub(r"[^A-Za-z0-9_]|^[0-9]", _group, spelled)
            if spelled.lower() not in self._lowered:
                return spelled
        number = 2
        while f"{made}_x_{number}".lower() in self._lowered:
            number += 1
        return f"{made}_x_{number}"


def mangle(name: str) -> str:
    """Give a name as one of Avro's.

    Avro's own words (`string`, `null`, …) are written with a group in front. Raises `StructureError`
    for a name of more than 255 characters.

    >>> mangle("customer_id"), mangle("we ird"), mangle("1st"), mangle("string")
    ('customer_id', 'we_x20_ird', '_x31_st', '_x73_tring')
    """
    if len(name) > MAX_LENGTH:
        raise StructureError(f"a name of at most {MAX_LENGTH} characters", f"{shown(name)} of {len(name)}")
    if name in _RESERVED:
        return _group_of(name[0]) + name[1:]
    return _UNFIT.sub(_group, name) or _EMPTY


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
