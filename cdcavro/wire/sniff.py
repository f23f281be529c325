"""Telling the format of a message by what the wire schemas say of themselves.

A format fits a message that holds all its required members and at least one of those that tell it,
null or not (`required` and `tells` in `attributes`), none of them an object, an array or a scalar
where the schema has another: other producers have names in common with ours. Among the formats
that fit, the one with the most telling members is taken; among equals, the first in the order of
`REGISTRY`. So a message of the Default family is `oms_default` unless it holds a `__light_type`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from cdcavro.avro.types import Array, Map, Record, Type, Union
from cdcavro.errors import MessageError, UnknownMessageError, shown
from cdcavro.exact import jsontext
from cdcavro.exact.members import ABSENT
from cdcavro.wire.attributes import field_rule
from cdcavro.wire.formats import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

AUTO: Final = "auto"
"""In place of a format's name: told for each file by its first messages."""
MIXED: Final = "mixed"
"""In place of a format's name: told for each message."""
_SHOWN: Final = 8
MemberPath = tuple[str, ...]
Told = bool | tuple[str, ...]
_SHAPES: Final[dict[type, type]] = {Array: list, Map: dict, Record: dict}


class _Marks(NamedTuple):
    """What a wire schema says about telling it; `shapes` has the JSON container of each place, None for a scalar."""

    required: set[MemberPath]
    tells: list[tuple[MemberPath, Told]]
    shapes: list[tuple[MemberPath, type | None]]


def sniff(message: bytes | str) -> str:
    """Return the format of a message.

    Raises `TextError` for what is not JSON, `UnknownMessageError` for what is no known format, and
    `StructureError` for what has the members of one, but in another shape.

    >>> sniff('{"type": "INSERT", "database": "shop", "data": [{"id": 1}]}')
    'oms_canal'
    """
    found = fits(message)
    if not found:
        raise _unknown(message)
    return best([found])


def _unknown(message: bytes | str) -> MessageError:
    """Make the error: where the members of a format are all there, what is wrong with them."""
    value = _parsed(message)
    told = best([{name: score for name in REGISTRY if (score := _score(value, name, _members_only))}])
    if told:
        try:
            REGISTRY[told].encode(message)
        except MessageError as error:
            return error
    return UnknownMessageError(f"a message of a known format ({_looked_for()})", _described(value))


def fits(message: bytes | str) -> dict[str, int]:
    """Return the formats whose required members a message holds, with the number of members that tell each.

    Formats without a telling member are left out. Raises `TextError`, `UnknownMessageError`.
    """
    value = _parsed(message)
    if not isinstance(value, dict):
        raise UnknownMessageError("object", jsontext.kind(value))
    scores = {name: _score(value, name, _is_shaped) for name in REGISTRY}
    return {name: score for name, score in scores.items() if score}


def best(messages: Iterable[dict[str, int]]) -> str:
    """Choose one format for the messages of a file, given what fits each of them.

    The format that fits most messages, then that with most telling members in all of them, then the
    first in the order of `REGISTRY`; an empty text if nothing fits.

    >>> best([{"oms_default": 1, "oms_default_extend_column_type": 1}])
    'oms_default'
    """
    count = dict.fromkeys(REGISTRY, 0)
    told = dict.fromkeys(REGISTRY, 0)
    for message in messages:
        for name, score in message.items():
            count[name] += 1
            told[name] += score
    found = max(REGISTRY, key=lambda name: (count[name], told[name]))
    return found if count[found] else ""


def _parsed(message: bytes | str) -> Any:
    raw = jsontext.to_bytes(message)
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return jsontext.parse(raw)


def _score(value: dict[str, Any], name: str, fits_shape: Callable[[Any, type | None], bool]) -> int:
    required, tells, shapes = _marks(name)
    if any(_at(value, place) in (None, ABSENT) for place in required):
        return 0
    if not all(fits_shape(_at(value, place), shape) for place, shape in shapes):
        return 0
    return sum(_told(_at(value, place), told) for place, told in tells)


def _members_only(_found: Any, _shape: type | None) -> bool:
    return True


def _is_shaped(found: Any, shape: type | None) -> bool:
    return found is None or found is ABSENT or (type(found) is shape if shape else type(found) not in (dict, list))


def _told(found: Any, told: Told) -> bool:
    return found is not ABSENT if told is True else isinstance(told, tuple) and found in told


def _at(value: Any, place: MemberPath) -> Any:
    for name in place:
        if not isinstance(value, dict):
            return ABSENT
        value = value.get(name, ABSENT)
    return value


@cache
def _marks(name: str) -> _Marks:
    marks = _Marks(set(), [], [])
    _collect(REGISTRY[name].envelope, (), marks)
    return marks


def _collect(declared: Type, place: MemberPath, marks: _Marks) -> None:
    for branch in declared.branches if isinstance(declared, Union) else (declared,):
        for one in branch.fields if isinstance(branch, Record) else ():
            rule = field_rule(one)
            own = (*place, rule.name)
            if rule.required:
                marks.required.add(own)
            if rule.tells:
                marks.tells.append((own, rule.tells))
            if rule.required or rule.tells:
                marks.shapes.append((own, _shape(one.type)))
            _collect(one.type, own, marks)


def _shape(declared: Type) -> type | None:
    branches = declared.branches if isinstance(declared, Union) else (declared,)
    return next((_SHAPES[type(branch)] for branch in branches if type(branch) in _SHAPES), None)


def _looked_for() -> str:
    return "; ".join(f"{name}: {_wanted(name)}" for name in REGISTRY)


def _wanted(name: str) -> str:
    required, tells, _ = _marks(name)
    needed = [
        ".".join(place) for place in required if not any(other[: len(place)] == place for other in required - {place})
    ]
    known = [".".join(place) for place, _ in tells if place not in required]
    some = f"one of {', '.join(known)}"
    if any(place in required for place, _ in tells):
        return " and ".join(needed)
    return " and ".join([*needed, some])


def _described(value: Any) -> str:
    if not isinstance(value, dict):
        return jsontext.kind(value)
    names = ", ".join(shown(name) for name in list(value)[:_SHOWN])
    more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
    return f"an object with {names}{more}" if value else "an empty object"
