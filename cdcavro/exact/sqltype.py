"""Declared column types as MySQL and its kin spell them, taken apart."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_MEMBER: Final = r"'(?:[^']++|'')*+'"
_DECLARED: Final = re.compile(
    rf"""\s*(?P<name>DOUBLE\s+PRECISION|LONG\s+VARBINARY|LONG\s+VARCHAR|CHAR\s+BYTE
        |(?:CHARACTER|CHAR)\s+VARYING|NATIONAL\s+\w+|\w+)
    \s*(?:\(\s*(?:
        (?P<arguments>[0-9]{{1,9}}(?:\s*,\s*[0-9]{{1,9}})*+)
        |(?P<members>{_MEMBER}(?:\s*,\s*{_MEMBER})*+)
    )\s*\))?
    (?P<rest>.*)""",
    re.ASCII | re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_MEMBERS: Final = re.compile(_MEMBER)
_REMEMBERED: Final = 1_000


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared type.

    Attributes: `name` (str), in upper case, without arguments; `arguments` (tuple of int), length or
    precision and scale; `members` (tuple of str), the labels of ENUM and SET; `indexes` (mapping),
    each label's first place in `members`; `unsigned` and `zerofill` (bool).
    """

    name: str
    arguments: tuple[int, ...] = ()
    members: tuple[str, ...] = ()
    indexes: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    unsigned: bool = False
    zerofill: bool = False


def declared_type(text: str) -> Declared:
    """Take a declared type apart. Text that is none gives a type of that name, which no column has.

    In labels `''` is an apostrophe and everything else is itself, as Canal writes them.

    >>> declared_type("decimal(10, 2) unsigned")
    Declared(name='DECIMAL', arguments=(10, 2), members=(), unsigned=True, zerofill=False)
    >>> declared_type("enum('a','b,c','d''e')").members
    ('a', 'b,c', "d'e")
    """
    return _remembered(text) if len(text) <= _REMEMBERED else _taken_apart(text)


def _taken_apart(text: str) -> Declared:
    found = _DECLARED.fullmatch(text)
    if found is None:
        return Declared(text.upper())
    name = " ".join(found["name"].upper().split())
    members = tuple(one[1:-1].replace("''", "'") for one in _MEMBERS.findall(found["members"] or ""))
    rest = found["rest"].upper().split()
    zerofill = "ZEROFILL" in rest
    return Declared(
        name=name,
        arguments=tuple(map(int, (found["arguments"] or "").replace(",", " ").split())),
        members=members,
        indexes={label: i for i, label in reversed(list(enumerate(members)))},
        unsigned=zerofill or "UNSIGNED" in rest or name == "SERIAL",
        zerofill=zerofill,
    )


_remembered: Final = lru_cache(maxsize=4096)(_taken_apart)
