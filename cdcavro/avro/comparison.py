"""Comparison of two schemas: what changed from one to the other, place by place.

Fields are paired by name, or else by an alias of the new field. Branches of unions are paired
likewise; if each union then has one record (or enum, or fixed) left, those two are paired as well.
The same pair of named types is compared only once.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.avro.types import (
    LISTED,
    MAX_DEPTH,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Type,
    Union,
    branch_name,
    brief,
    brief_list,
    logical_type,
)
from cdcavro.exact.jsonvalues import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

What = Literal[
    "added",
    "dropped",
    "renamed",
    "moved",
    "type",
    "default",
    "doc",
    "aliases",
    "symbols",
    "default symbol",
    "attribute",
    "text",
]
MAX_DIFFERENCES: Final = 10_000
_UNIT: Final = frozenset({"logicalType", "precision", "scale"})


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between two schemas.

    Attributes: `path` (str), the place in the new schema, or in the old one for something dropped;
    `what` (str), the kind of change;
    `old` and `new` (str), the value before and after, "" for none.
    """

    path: str
    what: What
    old: str = ""
    new: str = ""


def schema_diff(old: Schema | str, new: Schema | str) -> list[Difference]:
    """Return what changed from one schema to another; the list is empty only if their JSON is the same.

    Each schema is a `Schema` or its JSON text. A change that the parsed schema does not show, such as
    that of a field's `order`, appears as one difference of the "text". After 10,000 differences, a last
    one says that there are more. Raises `SchemaError` for a text that is not a valid schema.

    >>> schema_diff('["null", "int"]', '["null", "long"]')
    [Difference(path='$', what='type', old='[null, int]', new='[null, long]')]
    """
    was, now = (parse_schema(schema) if isinstance(schema, str) else schema for schema in (old, new))
    differences = list(islice(_SchemaComparison().compare("$", was.root, now.root), MAX_DIFFERENCES + 1))
    if len(differences) > MAX_DIFFERENCES:
        differences[-1] = Difference("$", "text", "", f"more than {MAX_DIFFERENCES:,} changes")
    if not differences and _json(json.loads(was.json)) != _json(json.loads(now.json)):
        return [Difference("$", "text", "", "written otherwise")]
    return differences


class _SchemaComparison:
    """A comparison of two schemas, which remembers the pairs of named types that it has compared."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()
        self._depth = 0

    def compare(self, path: str, old: Type, new: Type) -> Iterator[Difference]:
        if self._depth > MAX_DEPTH:
            yield Difference(path, "text", "", f"nested deeper than {MAX_DEPTH} levels: not compared")
            return
        self._depth += 1
        if isinstance(old, Union) or isinstance(new, Union):
            yield from self._compare_unions(path, old, new)
        elif isinstance(old, Array) and isinstance(new, Array):
            yield from self.compare(path + "[]", old.items, new.items)
        elif isinstance(old, Map) and isinstance(new, Map):
            yield from self.compare(path + "{}", old.values, new.values)
        elif isinstance(old, Named) and isinstance(new, Named) and type(old) is type(new):
            yield from self._compare_named(path, old, new)
        elif isinstance(old, Primitive) and isinstance(new, Primitive):
            if (old.name, _units(old)) != (new.name, _units(new)):
                yield Difference(path, "type", type_label(old), type_label(new))
            yield from _attribute_changes(
                path, old.attributes, new.attributes, is_unit_shown=_units(old) != _units(new)
            )
        else:
            yield Difference(path, "type", type_label(old), type_label(new))
        self._depth -= 1

    def _compare_unions(self, path: str, old: Type, new: Type) -> Iterator[Difference]:
        olds, news = _branches(old), _branches(new)
        pairs = _pair_branches(olds, news)
        is_same = isinstance(old, Union) is isinstance(new, Union) and len(olds) == len(news) == len(pairs)
        is_same = is_same and all(i == j for i, j in pairs)
        if not is_same:
            yield Difference(path, "type", type_label(old), type_label(new))
        for i, j in pairs:
            # The types of both unions, with their logical types, have been reported by now.
            below = self.compare(path, olds[i], news[j])
            yield from (
                below if is_same else (change for change in below if change.path != path or change.what != "type")
            )

    def _compare_named(self, path: str, old: Named, new: Named) -> Iterator[Difference]:
        if (old.name, new.name) in self._seen:
            return
        self._seen.add((old.name, new.name))
        if old.name != new.name:
            yield Difference(path, "renamed", brief(old.name), brief(new.name))
        yield from _text_changes(path, old, new)
        if isinstance(old, Enum) and isinstance(new, Enum):
            yield from _symbol_changes(path, old.symbols, new.symbols)
            if old.default != new.default:
                yield Difference(path, "default symbol", brief(old.default or ""), brief(new.default or ""))
        if isinstance(old, Fixed) and isinstance(new, Fixed) and (old.size, _units(old)) != (new.size, _units(new)):
            yield Difference(path, "type", type_label(old), type_label(new))
        if isinstance(old, Record) and isinstance(new, Record):
            yield from self._compare_records(path, old, new)
        is_shown = isinstance(old, Fixed) and isinstance(new, Fixed) and _units(old) != _units(new)
        yield from _attribute_changes(path, old.attributes, new.attributes, is_unit_shown=is_shown)

    def _compare_records(self, path: str, old: Record, new: Record) -> Iterator[Difference]:
        pairs = _pair_fields(old, new)
        moved = _moved_indexes([i for i, _ in pairs if i is not None])
        for j, (i, field) in enumerate(pairs):
            place = f"{path}.{brief(field.name)}"
            if i is None:
                yield Difference(place, "added", "", _field_label(field))
                continue
            was = old.fields[i]
            if was.name != field.name:
                yield Difference(place, "renamed", brief(was.name), brief(field.name))
            if i in moved:
                yield Difference(place, "moved", f"field {i + 1}", f"field {j + 1}")
            yield from self.compare(place, was.type, field.type)
            if _json(was.default) != _json(field.default):
                yield Difference(place, "default", brief(_json(was.default)), brief(_json(field.default)))
            yield from _text_changes(place, was, field)
            yield from _attribute_changes(place, was.attributes, field.attributes)
        kept = {i for i, _ in pairs}
        for i, field in enumerate(old.fields):
            if i not in kept:
                yield Difference(f"{path}.{brief(field.name)}", "dropped", _field_label(field), "")


def type_label(declared: Type, depth: int = 2) -> str:
    """Return a type's name in a few words, with its logical type.

    >>> type_label(Primitive("long", {"logicalType": "timestamp-micros"}))
    'long timestamp-micros'
    """
    match declared:
        case Union(branches):
            more = ", ..." if len(branches) > LISTED else ""
            return "[" + ", ".join(type_label(branch, depth) for branch in branches[:LISTED]) + more + "]"
        case Array(inner) | Map(inner):
            return f"{branch_name(declared)} of {type_label(inner, depth - 1) if depth else '...'}"
        case Fixed():
            return f"fixed {brief(declared.name)}({declared.size}){_units(declared)}"
        case Primitive():
            return declared.name + _units(declared)
        case Enum() | Record():
            return f"{type(declared).__name__.lower()} {brief(declared.name)}"
    raise TypeError(type(declared).__name__)


def _units(declared: Primitive | Fixed) -> str:
    unit = logical_type(declared)
    return f" {unit}" if unit else ""


def _field_label(field: Field) -> str:
    return type_label(field.type) + ("" if field.default is ABSENT else f", default {brief(_json(field.default))}")


def _text_changes(path: str, old: Named | Field, new: Named | Field) -> Iterator[Difference]:
    """Yield the changes of docs and aliases; the alias that a rename adds counts as part of the rename."""
    if old.doc != new.doc:
        yield Difference(path, "doc", brief(old.doc), brief(new.doc))
    if set(new.aliases) - {old.name} != set(old.aliases) - {new.name}:
        yield Difference(path, "aliases", brief_list(old.aliases), brief_list(new.aliases))


def _symbol_changes(path: str, old: Sequence[str], new: Sequence[str]) -> Iterator[Difference]:
    before, after = set(old), set(new)
    if before != after:
        dropped = [symbol for symbol in old if symbol not in after]
        added = [symbol for symbol in new if symbol not in before]
        yield Difference(path, "symbols", brief_list(dropped), brief_list(added))
    elif old != new:
        yield Difference(path, "symbols", brief_list(old), brief_list(new))


def _attribute_changes(
    path: str, old: Mapping[str, Any], new: Mapping[str, Any], *, is_unit_shown: bool = False
) -> Iterator[Difference]:
    for key in sorted({*old, *new} - (_UNIT if is_unit_shown else frozenset())):
        was, now = (_json(attributes.get(key, ABSENT)) for attributes in (old, new))
        if was != now:
            yield Difference(path, "attribute", *(brief(f"{key}: {value}") if value else "" for value in (was, now)))


def _branches(declared: Type) -> tuple[Type, ...]:
    return declared.branches if isinstance(declared, Union) else (declared,)


def _pair_branches(olds: Sequence[Type], news: Sequence[Type]) -> list[tuple[int, int]]:
    """Return pairs of branches, in the order of the old ones: by name, by alias, or as the only ones left of a kind."""
    unpaired = {branch_name(branch): i for i, branch in enumerate(olds)}
    pairs: list[tuple[int, int]] = []
    rest: list[int] = []
    for j, branch in enumerate(news):
        names = (branch_name(branch), *(branch.aliases if isinstance(branch, Named) else ()))
        match = next((name for name in names if name in unpaired), None)
        if match is None:
            rest.append(j)
        else:
            pairs.append((unpaired.pop(match), j))
    for kind in (Record, Enum, Fixed):
        before, after = (
            [i for i in unpaired.values() if isinstance(olds[i], kind)],
            [j for j in rest if isinstance(news[j], kind)],
        )
        if len(before) == len(after) == 1:
            pairs.append((before[0], after[0]))
    return sorted(pairs)


def _pair_fields(old: Record, new: Record) -> list[tuple[int | None, Field]]:
    """Return each new field with the index of the old field that it comes from, or None if it is new."""
    unpaired = {field.name: i for i, field in enumerate(old.fields)}
    by_name = {field.name: unpaired.pop(field.name) for field in new.fields if field.name in unpaired}
    pairs: list[tuple[int | None, Field]] = []
    for field in new.fields:
        alias = next((alias for alias in field.aliases if alias in unpaired and field.name not in by_name), None)
        pairs.append((by_name.get(field.name) if alias is None else unpaired.pop(alias), field))
    return pairs


def _moved_indexes(order: Sequence[int]) -> set[int]:
    """Return the fewest indexes that must have moved: all but those of a longest run that kept its order."""
    tails: list[int] = []
    ends: list[int] = []
    lengths = []
    for index in order:
        at = bisect_left(tails, index)
        tails[at : at + 1] = [index]
        lengths.append(at + 1)
    wanted = len(tails)
    for index, length in zip(reversed(order), reversed(lengths), strict=True):
        if length == wanted and (not ends or index < ends[-1]):
            ends.append(index)
            wanted -= 1
    return set(order) - set(ends)


def _json(value: Any) -> str:
    return "" if value is ABSENT else json.dumps(value, sort_keys=True)
