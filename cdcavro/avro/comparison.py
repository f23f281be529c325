"""Comparison of two schemas: what changed from one to the other, place by place, and findings on how data are read.

Fields are paired by name, or else by an alias of the new field. Branches of unions are paired
likewise; if each union then has one record (or enum, or fixed) left, those two are paired as well.
The same pair of named types is compared only once.

The findings say what cannot be read, is misread, or is not read by every reader.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from cdcavro.avro.defaults import default_branch, is_usable
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
from cdcavro.errors import SchemaError
from cdcavro.exact.jsontext import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

Result = TypeVar("Result")

MAX_FINDINGS: Final = 1000

Kind = Literal["refused", "unsafe", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding."""

    # The path, in the writer's names.
    where: str
    # A sentence for people.
    reason: str
    # "refused" if the data cannot be read, "unsafe" if data would be lost, misread or not read by every reader.
    kind: Kind
    # Whether only some of the data is affected.
    partial: bool = False


class Findings:
    """All findings in the order in which they were made: at most 1,000 of a kind, then one that says so."""

    def __init__(self) -> None:
        self.all: list[Finding] = []
        # The number of unions around the current place: what is refused within a branch affects only data that has it.
        self.choices = 0
        self._counts: Counter[Kind] = Counter()
        self._known: dict[Hashable, tuple[Any, str, list[Finding]]] = {}

    def add(self, where: str, reason: str, kind: Kind = "note", *, partial: bool = False) -> None:
        """Add a finding."""
        if self.choices and kind != "note":
            kind, partial = "unsafe", True
        self._put(Finding(where, reason, kind, partial))

    def repeat(self, findings: list[Finding], old: str, new: str) -> None:
        """Add findings once more, at another place."""
        if all(self._counts[kind] > MAX_FINDINGS for kind in {finding.kind for finding in findings}):
            return
        for finding in findings:
            if finding.where.startswith(old):
                self._put(replace(finding, where=new + finding.where.removeprefix(old)))

    def once(self, key: Hashable, where: str, compare: Callable[[], Result]) -> Result:
        """Return the result of a comparison, which is made once for a key; its findings are repeated at each place."""
        known = self._known.get(key)
        if known is None:
            start = len(self.all)
            result = compare()
            self._known[key] = result, where, self.all[start:]
            return result
        result, before, findings = known
        self.repeat(findings, before, where)
        return result

    def _put(self, finding: Finding) -> None:
        kind = finding.kind
        self._counts[kind] += 1
        if self._counts[kind] <= MAX_FINDINGS:
            self.all.append(finding)
        elif self._counts[kind] == MAX_FINDINGS + 1:
            self.all.append(Finding("$", f"more than {MAX_FINDINGS:,} of the kind; the rest is not listed", kind))


def unit_change(writer: Primitive | Fixed, reader: Primitive | Fixed, now_name: str, was_name: str) -> Finding | None:
    """Return the finding about logical types that differ, which could read 1.23 as 0.123, or seconds as milliseconds.

    `now_name` and `was_name` are the names of the reader's and the writer's type; the finding has no place.
    """
    was, now = logical_type(writer), logical_type(reader)
    if was and now:
        if was.name != now.name:
            return Finding("", f"logicalType {now.name} cannot read logicalType {was.name}", "refused")
        if was.scale != now.scale:
            return Finding("", f"scale {now.scale} cannot read scale {was.scale}", "refused")
        if was.precision > now.precision:
            return Finding(
                "", f"precision {now.precision} cannot read precision {was.precision}", "refused", partial=True
            )
        return None
    if (writer.name, reader.name) == ("bytes", "string"):
        why = f"string reads {was}: its bytes are no text" if was else "string reads bytes: not all are UTF-8"
        return Finding("", why, "unsafe", partial=not was)
    if now:
        return Finding("", f"{now} reads plain {was_name}: nothing says that it is one", "unsafe")
    return Finding("", f"plain {now_name} reads {was}: what it means is no longer said", "note") if was else None


def widened_meanings(union: Union) -> str:
    """Return the logical types in a union of int and long, which Spark reads as long; "" if there are none."""
    numbers = [branch for branch in union.branches if branch != Primitive("null")]
    names = {branch.name for branch in numbers if isinstance(branch, Primitive)}
    if names != {"int", "long"} or len(numbers) != len(names):
        return ""
    units = [logical_type(branch) for branch in numbers if isinstance(branch, Primitive)]
    return " and ".join(str(unit) for unit in units if unit)


def new_field_findings(field: Field) -> list[Finding]:
    """Return the findings about a field of the reader's that the writer lacks; they have no place."""
    name = brief(field.name)
    if field.default is ABSENT:
        return [Finding("", f"{name} is new and has no default", "refused")]
    if not is_usable(field.type, field.default):
        return [Finding("", f"{name} is new and its default is no value of its type", "refused")]
    findings = []
    if not _java_finds_branch(field.type, field.default):
        shown_default = "[]" if field.default == [] else brief(json.dumps(field.default))
        reason = f"{name} is new: Avro Java 1.12 fails on the default {shown_default} of a union"
        findings.append(Finding("", reason, "unsafe"))
    if not _is_literal(field.type, field.default):
        reason = f"{name} is new: fastavro fills in its default as the schema's JSON has it"
        findings.append(Finding("", reason, "note"))
    return findings


def _java_finds_branch(declared: Type, value: Any) -> bool:
    """Return whether Avro Java finds, for the default of each union, the branch that it is a value of.

    It goes by kinds of JSON: a number for the first branch that is a number, and anything for an array, a map, a
    record or an enum. An empty array has nothing in it that it could encode for a union.
    """
    match declared:
        case Union(branches):
            branch = default_branch(declared, value)
            first = next(one for one in branches if _java_accepts(one, value))
            return first is branch and value != [] and _java_finds_branch(branch, value)
        case Array(items):
            return all(_java_finds_branch(items, item) for item in value)
        case Map(values):
            return all(_java_finds_branch(values, item) for item in value.values())
        case Record(fields=fields):
            return all(_java_finds_branch(one.type, value.get(one.name, one.default)) for one in fields)
        case Primitive() | Enum() | Fixed():
            return True
    raise SchemaError("$", f"no default for {type(declared).__name__}")


def _java_accepts(declared: Type, value: Any) -> bool:
    match declared:
        case Primitive("null"):
            return value is None
        case Primitive("boolean"):
            return isinstance(value, bool)
        case Primitive("int" | "long" | "float" | "double"):
            return type(value) in (int, float)
        case Primitive() | Fixed():
            return isinstance(value, str)
        case Array() | Map() | Record() | Enum():
            return True
    raise SchemaError("$", f"no branch for {type(declared).__name__}")


def _is_literal(declared: Type, value: Any) -> bool:
    """Return whether a default in a schema's JSON is the value itself, for a reader that does not convert it."""
    match declared:
        case Union():
            return _is_literal(default_branch(declared, value), value)
        case Array(items):
            return all(_is_literal(items, item) for item in value)
        case Map(values):
            return all(_is_literal(values, item) for item in value.values())
        case Record(fields=fields):
            is_whole = value.keys() == {one.name for one in fields}
            return is_whole and all(_is_literal(one.type, value[one.name]) for one in fields)
        case Primitive(name):
            return name != "bytes" and logical_type(declared) is None and not _is_special(value)
        case Fixed():
            return False
        case Enum():
            return True
    raise SchemaError("$", f"no default for {type(declared).__name__}")


def _is_special(value: Any) -> bool:
    """Return whether a number has no form in JSON but text."""
    return isinstance(value, float) and not math.isfinite(value)


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
