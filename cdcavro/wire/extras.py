"""Extras: JSON pointers (RFC 6901) with texts, which are noted for a payload and applied to a record.

Each is checked before it is applied.

An empty text removes the member; any other is parsed and replaces the member. No pointer may lead
into a value that another one inserts, and the parent of each must already be there, so that their
order does not matter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.errors import PayloadError, StructureError, TextError, shown
from cdcavro.exact import jsontext
from cdcavro.exact.jsontext import ABSENT, unescape
from cdcavro.exact.numbers import is_number, number
from cdcavro.wire.kafka import KAFKA, unwraps_records, wrap_message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cdcavro.avro.binary import Buffer

    ExtrasStep = tuple[Sequence[str], str, Any]

_WORDS: Final = {"true": True, "false": False, "null": None}
_TILDE: Final = re.compile("~(?![01])")


MAX_NOTES: Final = 100_000
# A pointer spells out the names above a member, so a long name with many members below it would be repeated for each.
# The bytes of repeated names are bounded in all, and in proportion to the rest of the payload.
MAX_REPEATED: Final = 2 << 20
FREE_BYTES: Final = 64 << 10
PROPORTION: Final = 64


class SchemaMember(NamedTuple):
    """A member that the schema names."""

    is_scalar: bool
    # Whether a message must have it.
    is_required: bool
    # The pointers to all its parents, outermost first, and their names.
    above: tuple[str, ...]
    parents: tuple[str, ...]
    name: str
    # Whether a string may stand in place of the object that it is.
    is_text: bool = False


def schema_member(pointer: str, *, is_scalar: bool, is_required: bool, is_text: bool = False) -> SchemaMember:
    """Return the schema's member at a pointer.

    >>> schema_member("/a/b~1c", is_scalar=True, is_required=False).above
    ('/a',)
    """
    tokens = pointer.split("/")
    above = tuple("/".join(tokens[:end]) for end in range(2, len(tokens)))
    *parents, name = map(unescape, tokens[1:])
    return SchemaMember(is_scalar, is_required, above, tuple(parents), name, is_text)


def apply(
    record: dict[str, Any], extras: Mapping[str, str], places: Mapping[str, SchemaMember] | None = None
) -> dict[str, Any]:
    """Apply `extras` to a record, in place, and return it, or the Kafka record around it if they hold that.

    `places` are the members that the schema names, by pointer. Raises `PayloadError` for an invalid pointer,
    a missing parent, and a text that is not JSON or not allowed in its place.

    >>> apply({"a": 1, "b": 2}, {"/a": "1.0", "/b": "", "/c": "[]"})
    {'a': 1.0, 'c': []}
    >>> apply({"op": "del"}, {"kafka": '{"topic":"shop"}'})
    {'topic': 'shop', 'value': {'op': 'del'}}
    """
    members = places or {}
    beside = extras.get(KAFKA)
    if beside is not None:
        if not unwraps_records([place.name for place in members.values() if not place.parents]):
            raise PayloadError("a JSON pointer in extras", shown(KAFKA))
        rest = {pointer: value for pointer, value in extras.items() if pointer != KAFKA}
        return wrap_message(apply(record, rest, places), beside)
    for pointer, value in extras.items():
        _check_step(pointer, value, extras, members)
    # No text that is put in is above another one, so a parent stays what it is.
    above: Sequence[str] | None = None
    parent: Any = None
    for pointer, value in extras.items():
        parents, name = _split_pointer(pointer, members)
        if parents != above:
            above, parent = parents, _parent(record, parents, pointer)
        _put_member(parent, name, pointer, value)
    return record


def checked_steps(extras: Mapping[str, str], places: Mapping[str, SchemaMember]) -> list[ExtrasStep] | None:
    """Return `extras` as checked steps for `apply_steps`: names of the parents, name of the member, scalar or `ABSENT`.

    Return None if the steps depend on the record or if `apply` would raise an error.

    >>> checked_steps({"/a/b": "1.0"}, {"/a/b": schema_member("/a/b", is_scalar=True, is_required=False)})
    [(('a',), 'b', 1.0)]
    """
    checked: list[ExtrasStep] = []
    try:
        for pointer, value in extras.items():
            _check_step(pointer, value, extras, places)
            parents, name = _split_pointer(pointer, places)
            put = ABSENT if value == "" else _parse(value, pointer)
            if type(put) is dict or type(put) is list:
                return None
            checked.append((parents, name, put))
    except PayloadError:
        return None
    return checked


def apply_steps(record: dict[str, Any], checked: list[ExtrasStep]) -> bool:
    """Apply steps to a record, in place; return whether all of them could be applied."""
    for parents, name, value in checked:
        parent: Any = record
        for token in parents:
            parent = parent.get(token) if type(parent) is dict else None
        if type(parent) is not dict:
            return False
        if value is ABSENT:
            parent.pop(name, None)
        else:
            parent[name] = value
    return True


def _put_member(parent: Any, name: str, pointer: str, value: str) -> None:
    if type(parent) is list:
        parent[_index(parent, name, pointer)] = _parse(value, pointer)
    elif value == "":
        parent.pop(name, None)
    else:
        parent[name] = None if value == "null" else _parse(value, pointer)


def _check_step(pointer: str, value: str, extras: Mapping[str, str], places: Mapping[str, SchemaMember]) -> None:
    """Check a pointer, and also its text if the schema names the member that it leads to."""
    place = places.get(pointer)
    if place is None:
        _check_pointer(pointer, extras)
    else:
        _check_disjoint(pointer, place.above, extras)
        _check_text(pointer, value, place)


def _split_pointer(pointer: str, places: Mapping[str, SchemaMember]) -> tuple[Sequence[str], str]:
    """Return the names of the parents in a pointer, and the name of the member."""
    place = places.get(pointer)
    if place is not None:
        return place.parents, place.name
    *parents, name = pointer[1:].split("/")
    if "~" in pointer:
        return [unescape(token) for token in parents], unescape(name)
    return parents, name


def _check_pointer(pointer: str, extras: Mapping[str, str]) -> None:
    if pointer[:1] != "/":
        raise PayloadError("a JSON pointer in extras", shown(pointer))
    if pointer.count("/") > jsontext.MAX_DEPTH:
        raise PayloadError(f"at most {jsontext.MAX_DEPTH} levels in extras", "more", pointer=pointer)
    if "~" in pointer and _TILDE.search(pointer):
        raise PayloadError("~0 and ~1 only in a JSON pointer in extras", shown(pointer))
    end = pointer.rfind("/") if len(extras) > 1 else 0
    while end > 0:
        if pointer[:end] in extras:
            _check_disjoint(pointer, (pointer[:end],), extras)
        end = pointer.rfind("/", 0, end)


def _check_disjoint(pointer: str, above: tuple[str, ...], extras: Mapping[str, str]) -> None:
    for parent in above:
        if parent in extras:
            raise PayloadError("extras that lie apart", f"one inside {shown(parent)}", pointer=pointer)


def _check_text(pointer: str, value: str, place: SchemaMember) -> None:
    bare = value.strip(" \t\r\n") if value not in ("", "null") else value
    if value == "" or bare == "null":
        if place.is_required:
            raise PayloadError("a required member", bare or "none", pointer=pointer)
    elif not place.is_scalar and not (place.is_text and bare.startswith('"')):
        raise PayloadError("null or nothing in extras in place of an object or array", shown(value), pointer=pointer)
    elif bare.startswith(("[", "{")):
        raise PayloadError("a scalar in extras in place of a scalar", shown(value), pointer=pointer)


def _parent(record: Any, tokens: Sequence[str], pointer: str) -> Any:
    place = record
    for token in tokens:
        if type(place) is dict:
            place = place.get(token)
        elif type(place) is list:
            place = place[_index(place, token, pointer)]
        else:
            break
    if type(place) is not dict and type(place) is not list:
        raise PayloadError("a parent in the record for a pointer in extras", "none", pointer=pointer)
    return place


def _index(items: list[Any], token: str, pointer: str) -> int:
    if token.isascii() and token.isdigit() and len(token) < 10 and str(int(token)) == token:  # noqa: PLR2004
        index = int(token)
        if index < len(items):
            return index
    raise PayloadError(f"an index below {len(items)} in extras", shown(token), pointer=pointer)


def _is_plain(value: str) -> bool:
    """Return whether a JSON text is a string without escapes."""
    inner = value[1:-1]
    is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
    return is_quoted and inner.isprintable() and '"' not in inner and "\\" not in inner


def _parse(value: str, pointer: str) -> Any:
    if value in _WORDS:
        return _WORDS[value]
    if is_number(value):
        return number(value)
    if _is_plain(value):
        return value[1:-1]
    try:
        return jsontext.parse(value, above=pointer.count("/"))
    except TextError as error:
        raise PayloadError(f"{error.expected} in extras", error.got, pointer=pointer + error.pointer) from error


class Notes:
    """The notes of one message for `extras`. Attribute: `count` (int), their number."""

    __slots__ = ("_entries", "_repeated", "count")

    def __init__(self) -> None:
        self._entries: list[tuple[str, str]] | None = None
        self._repeated = 0
        self.count = 0

    def add(self, pointer: str, value: str) -> None:
        """Note a text for a pointer. Raises `StructureError` beyond 100,000 notes, because each takes much memory."""
        if self.count >= MAX_NOTES:
            raise StructureError(f"at most {MAX_NOTES} values that the schema has no place for", "one more")
        if self._entries is None:
            self._entries = []
        self._entries.append((pointer, value))
        self.count += 1

    def below(self, pointer: str, since: int) -> None:
        """Prefix the notes from index `since` on with a pointer.

        Raises `StructureError` if all pointers would repeat more than 2 MiB of names that the message has once.
        """
        entries = self._entries
        if entries is not None:
            size = len(pointer) if pointer.isascii() else len(pointer.encode())
            self._repeated += size * (len(entries) - since - 1)
            if self._repeated > MAX_REPEATED:
                self._refuse_repeated(MAX_REPEATED)
            entries[since:] = [(pointer + below, value) for below, value in entries[since:]]

    def _refuse_repeated(self, most: int) -> None:
        expected = f"at most {most} bytes of names repeated in pointers to what the schema has no place for"
        raise StructureError(expected, "more")

    def move_first(self, since: int, middle: int) -> None:
        """Move the notes from index `middle` on in front of those from index `since` on."""
        entries = self._entries
        if entries is not None and since < middle:
            entries[since:] = entries[middle:] + entries[since:middle]

    def write(self, out: Buffer) -> None:
        """Append the notes as a map of strings.

        Raises `StructureError` if the names repeated in pointers are far longer than the rest of the payload.
        """
        if self._entries is not None:
            out.write_long(self.count)
            for pointer, value in self._entries:
                out.write_string(pointer)
                out.write_string(value)
            most = FREE_BYTES + PROPORTION * (len(out) - self._repeated)
            if self._repeated > most:
                self._refuse_repeated(most)
        out.append(0)
