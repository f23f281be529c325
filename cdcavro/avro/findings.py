"""The findings of a comparison of two schemas: what cannot be read, is misread, or is not read by every reader."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from cdcavro.avro.defaults import default_branch, is_usable
from cdcavro.avro.types import Array, Enum, Field, Fixed, Map, Primitive, Record, Type, Union, brief, logical_type
from cdcavro.errors import SchemaError
from cdcavro.exact.jsonvalues import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

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
