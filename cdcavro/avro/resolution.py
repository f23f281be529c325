"""Schema resolution: how a reader's schema reads what a writer's schema wrote.

The two schemas are compared once. The result is a tree of small steps, which knows nothing of bytes, and a
list of findings.

Source: Avro 1.8.2, "Schema Resolution" and "Aliases"; for an enum's default, Avro 1.9, "Enums". There are two
deliberate differences from the specification: named types match by full name or alias, so that a record
renamed without an alias is refused rather than read by chance; and if a reader's union has exactly
the writer's type, that branch is chosen, as in Avro Java, even if one that it promotes to comes first.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cdcavro.avro.comparison import Finding, Findings, new_field_findings, unit_change, widened_meanings
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
    is_plain,
    kind_and_last,
    label,
    last_name,
    named_types,
    too_nested,
    within_stack,
)
from cdcavro.errors import ResolutionError

if TYPE_CHECKING:
    from collections.abc import Mapping


PROMOTIONS: Final = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "string": ("string", "bytes"),
    "bytes": ("bytes", "string"),
}
_SAME_IN_PYTHON: Final = {("int", "long"), ("float", "double")}
_EXACT: Final = {("int", "float"): 24, ("long", "float"): 24, ("long", "double"): 53}


@dataclass(frozen=True, slots=True)
class ReadPrimitive:
    """Read a value of one primitive type and return it as another."""

    # The type that was written.
    writer: Primitive
    # The type that is wanted.
    reader: Primitive


@dataclass(frozen=True, slots=True)
class ReadFixed:
    """Read a fixed number of bytes."""

    # In bytes.
    size: int


@dataclass(frozen=True, slots=True)
class ReadEnum:
    """Read the index of a symbol."""

    # The type that is wanted.
    reader: Enum
    # What the reader reads each of the writer's symbols as: None if it lacks the symbol and has no default.
    symbols: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class ReadArray:
    """Read the items of an array."""

    # The step for one item.
    items: Step


@dataclass(frozen=True, slots=True)
class ReadMap:
    """Read the values of a map."""

    # The step for one value.
    values: Step


@dataclass(frozen=True, slots=True)
class ReadUnion:
    """Read the index of a branch, then a value of the branch."""

    # One step for each of the writer's branches, or the reason why the reader cannot read that branch.
    branches: tuple[Step | str, ...]


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """Read the writer's fields in order, each into a field of the reader or nowhere; then fill in the defaults.

    For a record that contains itself, one of the steps leads back to this one.
    """

    # The type that is wanted.
    reader: Record
    # For each of the writer's fields: its step, the field, and the reader's field; None if the reader lacks it.
    fields: tuple[tuple[Step, Field, Field | None], ...]
    # The reader's fields that the writer lacks.
    defaults: tuple[Field, ...]


Step = ReadPrimitive | ReadFixed | ReadEnum | ReadArray | ReadMap | ReadUnion | ReadRecord


@dataclass(slots=True)
class RecordPair:
    """Two records that are being compared or were compared, and the result."""

    # The path at which they were compared first.
    where: str
    # The step that reads one into the other.
    step: ReadRecord
    # The path and the reason of the error, if there is one.
    error: tuple[str, str] | None = None
    # None until the comparison has ended.
    findings: list[Finding] | None = None


class Aliases:
    """An index of the aliases in a reader's schema (Avro 1.8.2, "Aliases"), created from its root type.

    A table that was renamed often has many aliases, and types are used in many places; with the index,
    no lookup searches a list.
    """

    def __init__(self, reader: Type) -> None:
        self.root = reader
        # Each named type with the first path that leads to it.
        self.named = [*named_types(reader)]
        # The named types by full name.
        self.types: dict[str, Named] = {}
        # For each alias, the full names of the types that have it.
        self.claims: dict[str, dict[str, None]] = {}
        self._fields: dict[str, dict[str, Field]] = {}
        for _, named in self.named:
            self.types[named.name] = named
            for alias in named.aliases:
                self.claims.setdefault(alias, {})[named.name] = None
            if isinstance(named, Record):
                self._fields[named.name] = {alias: field for field in named.fields for alias in field.aliases}

    def has(self, name: str, reader: Named) -> bool:
        """Return whether a reader's type has this full name or has it as an alias."""
        return reader.name == name or reader.name in self.claims.get(name, ())

    def fields(self, reader: Record) -> Mapping[str, Field]:
        """Return the fields of a record by alias."""
        return self._fields[reader.name]


@within_stack(too_nested)
def resolve(writer: Type, reader: Type, where: str = "$") -> Step:
    """Return the step that reads the writer's data as the reader's; `where` is the path. Raises `ResolutionError`."""
    return _Resolver(Aliases(reader), Aliases(writer)).step(writer, reader, where)


@within_stack(too_nested)
def findings(writer: Aliases, reader: Aliases) -> list[Finding]:
    """Return everything that `resolve` finds in a comparison of two roots, instead of raising the first refusal."""
    resolver = _Resolver(reader, writer)
    with suppress(ResolutionError):
        resolver.step(writer.root, reader.root, "$")
    return resolver.findings.all


class _Resolver:
    """A comparison and its findings so far. A record or a union catches the errors within it and compares the rest."""

    def __init__(self, reader: Aliases, writer: Aliases | None = None) -> None:
        self.findings = Findings()
        self._skipped = _Resolver(writer) if writer else self
        self._aliases = reader
        self._enums: dict[tuple[int, int], tuple[ReadEnum, str]] = {}
        self._places: dict[int, dict[str, int]] = {}
        self._pairs: dict[tuple[int, int, bool], RecordPair] = {}
        self._order: list[tuple[int, int, bool]] = []
        self._open: dict[tuple[int, int], RecordPair] = {}
        self._written = self._read = -1

    def step(self, writer: Type, reader: Type, where: str, below: tuple[int, int] = (1, 1)) -> Step:
        """Return the step for two types.

        `below` is how many levels each of them is below the types around it, as a parser counts them.
        """
        self._written += below[0]
        self._read += below[1]
        try:
            if max(self._written, self._read) > MAX_DEPTH:
                raise self._refuse(where, f"nested deeper than {MAX_DEPTH} levels")
            if not isinstance(writer, Union) and not isinstance(reader, Union):
                return self._step(writer, reader, where)
            if self._written < MAX_DEPTH > self._read and is_plain(writer) and is_plain(reader):
                key = id(writer), id(reader), self.findings.choices > 0
                return self.findings.once(key, where, lambda: self._resolve_union(writer, reader, where))
            return self._resolve_union(writer, reader, where)
        finally:
            self._written -= below[0]
            self._read -= below[1]

    def _resolve_union(self, writer: Type, reader: Type, where: str) -> Step:
        if isinstance(writer, Union):
            return self._from_union(writer, reader, where)
        if isinstance(reader, Union):
            return self._into_union(writer, reader, where)
        raise TypeError("neither is a union")

    def _step(self, writer: Type, reader: Type, where: str) -> Step:
        match writer, reader:
            case Primitive(), Primitive():
                return self._primitive(writer, reader, where)
            case Array(), Array():
                return ReadArray(self.step(writer.items, reader.items, where + "[]"))
            case Map(), Map():
                return ReadMap(self.step(writer.values, reader.values, where + "{}"))
            case Fixed(), Fixed() if self._is_same(writer, reader) and writer.size == reader.size:
                self._check_unit(writer, reader, where)
                return ReadFixed(writer.size)
            case Enum(), Enum() if self._is_same(writer, reader):
                return self._enum(writer, reader, where)
            case Record(), Record() if self._is_same(writer, reader):
                return self._resolve_records(writer, reader, where)
        raise self._refuse_unmatched(writer, (reader,), where, f"{label(reader)} cannot read {label(writer)}")

    def _is_same(self, writer: Named, reader: Named) -> bool:
        return self._aliases.has(writer.name, reader)

    def _refuse(self, where: str, reason: str, *, partial: bool = False) -> ResolutionError:
        self.findings.add(where, reason, "refused", partial=partial)
        return ResolutionError(where, reason)

    def _primitive(self, writer: Primitive, reader: Primitive, where: str) -> Step:
        if reader.name not in PROMOTIONS.get(writer.name, (writer.name,)):
            raise self._refuse(where, f"{reader.name} cannot read {writer.name}")
        self._check_unit(writer, reader, where)
        digits = _EXACT.get((writer.name, reader.name))
        if digits:
            self.findings.add(where, f"{reader.name} reads {writer.name}: integers beyond 2^{digits} lose digits")
        return ReadPrimitive(writer, reader)

    def _check_unit(self, writer: Primitive | Fixed, reader: Primitive | Fixed, where: str) -> None:
        change = unit_change(writer, reader, brief(reader.name), brief(writer.name))
        if change is not None:
            self.findings.add(where, change.reason, change.kind, partial=change.partial)
            if change.kind == "refused":
                raise ResolutionError(where, change.reason)

    def _refuse_unmatched(self, writer: Type, readers: tuple[Type, ...], where: str, reason: str) -> ResolutionError:
        """Return the error for types that do not match; note which readers accept another name all the same."""
        same_kind = [named for named in readers if isinstance(named, Named) and type(named) is type(writer)]
        if isinstance(writer, Named) and any(last_name(named) == last_name(writer) for named in same_kind):
            self.findings.add(
                where, f"fastavro, and Avro Java mostly, passes over the namespace of {brief(writer.name)}"
            )
        elif isinstance(writer, Record) and same_kind:
            self.findings.add(where, f"Avro Java, and Spark with it, reads {brief(writer.name)} without an alias too")
        return self._refuse(where, reason)

    def _enum(self, writer: Enum, reader: Enum, where: str) -> ReadEnum:
        pair = (id(writer), id(reader))
        if pair not in self._enums:
            known = set(reader.symbols)
            symbols = tuple(symbol if symbol in known else reader.default for symbol in writer.symbols)
            self._enums[pair] = (
                ReadEnum(reader, symbols),
                brief_list([symbol for symbol in writer.symbols if symbol not in known]),
            )
        step, lacking = self._enums[pair]
        if lacking:
            reason = f"{label(reader)} lacks {lacking}"
            if reader.default is None:
                self.findings.add(where, reason, "unsafe", partial=True)
            else:
                self.findings.add(
                    where, f"{reason}: its default {brief(reader.default)} is read instead; Avro 1.8.2 fails"
                )
        return step

    def _from_union(self, writer: Union, reader: Type, where: str) -> Step:
        branches: list[Step | str] = []
        self.findings.choices += 1
        for branch in writer.branches:
            try:
                branches.append(self.step(branch, reader, where, (1, 0)))
            except ResolutionError as error:
                branches.append(error.reason)
        self.findings.choices -= 1
        if all(isinstance(branch, str) for branch in branches):
            raise self._refuse(where, f"{label(reader)} reads no branch of {label(writer)}")
        return ReadUnion(tuple(branches))

    def _into_union(self, writer: Type, reader: Union, where: str) -> Step:
        if id(reader) not in self._places:
            places = {branch_name(branch): i for i, branch in enumerate(reader.branches)}
            for i, branch in enumerate(reader.branches):
                if isinstance(branch, Named):
                    places.setdefault(kind_and_last(branch), i)
            self._places[id(reader)] = places
            meanings = widened_meanings(reader)
            if meanings:
                self.findings.add(where, f"Spark reads {label(reader)} as long, and {meanings} as plain numbers")
        places = self._places[id(reader)]
        at = self._branch(writer, places)
        if at is None:
            reason = f"no branch of {label(reader)} reads {label(writer)}"
            raise self._refuse_unmatched(writer, reader.branches[:LISTED], where, reason)
        names = _promotions(writer)
        if isinstance(writer, Named):
            # fastavro takes types of one kind and one last name for the same.
            names = (kind_and_last(writer),)
        first = min((places[name] for name in names if name in places), default=at)
        if first < at:
            before = branch_name(reader.branches[first])
            reason = f"fastavro reads {label(writer)} into {before}, which stands before it in the union"
            is_same = (branch_name(writer), before) in _SAME_IN_PYTHON
            self.findings.add(where, reason, "note" if is_same else "unsafe")
        return self.step(writer, reader.branches[at], where, (0, 1))

    def _branch(self, writer: Type, places: dict[str, int]) -> int | None:
        """Return the index of the branch of the writer's type, else of the first by alias or promotion."""
        name = branch_name(writer)
        if name in places:
            return places[name]
        claims = self._aliases.claims.get(name, {}) if isinstance(writer, Named) else {}
        if len(claims) > len(places):
            claims = {claim: None for claim in places if claim in claims}
        names = (*claims, *_promotions(writer))
        return min((places[name] for name in names if name in places), default=None)

    def _resolve_records(self, writer: Record, reader: Record, where: str) -> Step:
        """Compare two records, once: within themselves the step leads back, elsewhere the findings are the same."""
        pair = (id(writer), id(reader))
        if pair in self._open:
            return self._open[pair].step
        key = (*pair, self.findings.choices > 0)
        if key not in self._pairs:
            self._compare(writer, reader, where, key)
        else:
            self.findings.repeat(self._pairs[key].findings or [], self._pairs[key].where, where)
        known = self._pairs[key]
        if known.error is not None:
            place, reason = known.error
            raise ResolutionError(where + place.removeprefix(known.where), reason)
        return known.step

    def _compare(self, writer: Record, reader: Record, where: str, key: tuple[int, int, bool]) -> None:
        start, before = len(self.findings.all), len(self._order)
        paired = self._open[key[:2]] = RecordPair(where, ReadRecord(reader, (), ()))
        try:
            fields, missing = self._record(writer, reader, where)
            object.__setattr__(paired.step, "fields", fields)
            object.__setattr__(paired.step, "defaults", missing)
        except ResolutionError as error:
            paired.error = error.where, error.reason
            # What was compared in here may hold the step that came to nothing.
            for inner in self._order[before:]:
                del self._pairs[inner]
            del self._order[before:]
        else:
            self._order.append(key)
        del self._open[key[:2]]
        paired.findings = self.findings.all[start:]
        self._pairs[key] = paired

    def _record(
        self, writer: Record, reader: Record, where: str
    ) -> tuple[tuple[tuple[Step, Field, Field | None], ...], tuple[Field, ...]]:
        own = {field.name for field in writer.fields}
        by_name, by_alias = {field.name: field for field in reader.fields}, self._aliases.fields(reader)
        fields: list[tuple[Step, Field, Field | None]] = []
        matched: set[str] = set()
        first: tuple[str, str] | None = None  # an error would hold the frames that it went through
        for written in writer.fields:
            into = by_name.get(written.name) or by_alias.get(written.name)
            if into and into.name != written.name and into.name in own:
                into = None
            try:
                fields.append((self._field(written, into, matched, f"{where}.{brief(written.name)}"), written, into))
            except ResolutionError as error:
                first = first or (error.where, error.reason)
        missing = tuple(field for field in reader.fields if field.name not in matched)
        for finding in (finding for field in missing for finding in new_field_findings(field)):
            self.findings.add(where, finding.reason, finding.kind)
            if finding.kind == "refused":
                first = first or (where, finding.reason)
        if first is not None:
            raise ResolutionError(*first)
        return tuple(fields), missing

    def _field(self, written: Field, into: Field | None, matched: set[str], where: str) -> Step:
        if into is None:
            return self._skipped.step(written.type, written.type, where)
        if into.name in matched:
            raise self._refuse(where, f"{brief(into.name)} reads another field already")
        matched.add(into.name)
        return self.step(written.type, into.type, where)


def _promotions(writer: Type) -> tuple[str, ...]:
    return PROMOTIONS.get(writer.name, ())[1:] if isinstance(writer, Primitive) else ()
