"""Compatibility: whether two schemas read each other's data, and why not.

The rules are those by which payloads are read (`resolution`). The following count as well, because
each loses data or breaks some reader:

* an enum's symbol or a union's branch that the reader lacks: this affects only data that has it;
* bytes read as a string: not all bytes are UTF-8;
* a logical type that only the reader has: nothing says that the writer's numbers have that meaning.
  One that only the writer has is a note: every digit is read, and readers may ignore logical types;
* ambiguous aliases. Avro Java renames throughout the writer's schema before it compares, so it fails
  where two fields or types get the same name, and mistakes a type whose name is also an alias of
  another type for that other type; fastavro keeps only one of two values;
* a new field whose default Avro Java 1.12 takes for that of another branch of a union, or for none;
* a default in the writer's schema that names a field which the reader's aliases rename: Avro Java does not find
  it, and refuses the writer's schema;
* a branch of a union that fastavro reads into an earlier one that promotes, such as a long into a double.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import fastavro.schema

from cdcavro.avro.defaults import is_accepted
from cdcavro.avro.resolution import Aliases, findings
from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.avro.types import Record, brief, recursion, too_nested, within_stack
from cdcavro.exact.jsontext import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.avro.types import Named

Direction = Literal["backward", "forward"]
Name = Literal["full", "backward", "forward", "breaking"]

_NAMES: Final[dict[tuple[bool, bool], Name]] = {
    (True, True): "full",
    (True, False): "backward",
    (False, True): "forward",
    (False, False): "breaking",
}
_MEANINGS: Final[dict[Name, str]] = {
    "full": "each reads all data of the other",
    "backward": "the reader reads all data of the writer, the writer not all of the reader",
    "forward": "the writer reads all data of the reader, the reader not all of the writer",
    "breaking": "neither reads all data of the other",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason why data of one schema cannot be read with the other.

    Attributes: `direction` (str), "backward" if the reader cannot read what the writer wrote, "forward" the other way;
    `path` (str), the place, in the names of the schema that wrote the data;
    `reason` (str);
    `partial` (bool), whether only some of the data is affected.
    """

    direction: Direction
    path: str
    reason: str
    partial: bool

    def __str__(self) -> str:
        return f"{self.direction}, {self.path}: {self.reason}{' (some data)' if self.partial else ''}"


@dataclass(frozen=True, slots=True)
class Remark:
    """Something worth knowing that is not a problem.

    Attributes: `direction` (str), `path` (str) and `reason` (str), as in `Problem`.
    """

    direction: Direction
    path: str
    reason: str

    def __str__(self) -> str:
        return f"note, {self.direction}, {self.path}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of `verdict`. Its text is the name and its meaning, then each problem and note on its own line.

    Attributes: `problems` (tuple of `Problem`) and `notes` (tuple of `Remark`), backward ones first.
    """

    problems: tuple[Problem, ...]
    notes: tuple[Remark, ...]

    @property
    def backward(self) -> bool:
        """Whether the reader's schema reads all data of the writer's."""
        return all(problem.direction != "backward" for problem in self.problems)

    @property
    def forward(self) -> bool:
        """Whether the writer's schema reads all data of the reader's."""
        return all(problem.direction != "forward" for problem in self.problems)

    @property
    def name(self) -> Name:
        """The verdict in one word: full, backward, forward or breaking."""
        return _NAMES[self.backward, self.forward]

    def __str__(self) -> str:
        lines = [f"{self.name}: {_MEANINGS[self.name]}", *map(str, self.problems), *map(str, self.notes)]
        return "\n  ".join(lines)


@within_stack(too_nested)
def verdict(reader: Schema | str, writer: Schema | str) -> Verdict:
    """Return whether each of two schemas reads what the other wrote, and why not.

    `reader` is usually the newer schema and `writer` the older one; each is a `Schema` or its JSON text.
    Unlike other checkers, this one compares logical types: with another scale or unit, a different
    value would be read. Raises `SchemaError` for a text that is not a valid schema.

    >>> print(verdict('"long"', '"int"'))
    backward: the reader reads all data of the writer, the writer not all of the reader
      forward, $: int cannot read long
    """
    new, old = _Side(reader), _Side(writer)
    problems: list[Problem] = []
    notes: list[Remark] = []
    is_same = new.declared == old.declared
    refusals = list(dict.fromkeys([*_refusals(old), *_refusals(new)]))
    _judge("backward", new.aliases, old.aliases, problems, notes, is_same=is_same)
    notes += [Remark("backward", "$", reason) for reason in refusals]
    _judge("forward", old.aliases, new.aliases, problems, notes, is_same=is_same)
    notes += [Remark("forward", "$", reason) for reason in refusals]
    return Verdict(tuple(problems), tuple(notes))


class _Side:
    """One of two schemas, parsed once for both directions."""

    def __init__(self, schema: Schema | str) -> None:
        parsed = parse_schema(schema) if isinstance(schema, str) else schema
        self.declared = json.loads(parsed.json)
        self.aliases = Aliases(parsed.root)


def _judge(
    direction: Direction,
    reader: Aliases,
    writer: Aliases,
    problems: list[Problem],
    notes: list[Remark],
    *,
    is_same: bool,
) -> None:
    blamed: set[str] = set()
    for finding in findings(writer, reader):
        if finding.kind == "note":
            notes.append(Remark(direction, finding.where, finding.reason))
        else:
            blamed.add(finding.where)
            problems.append(Problem(direction, finding.where, finding.reason, finding.partial))
    if not is_same:
        refused = [*_type_ambiguities(writer, reader), *_stale_defaults(writer, reader)]
        problems += [Problem(direction, path, reason, partial=False) for path, reason in refused if path not in blamed]


def _refusals(side: _Side) -> Iterator[str]:
    """Yield the reasons why one of the three readers does not take a schema at all."""
    endless = recursion(side.aliases.root)
    if endless:
        yield f"Spark does not read {brief(endless)}, which contains itself"
    try:
        fastavro.schema.parse_schema(side.declared)
    except Exception as error:  # noqa: BLE001  fastavro raises all kinds of errors
        yield f"fastavro refuses a schema: {brief(str(error) or type(error).__name__)}"


def _type_ambiguities(writer: Aliases, aliases: Aliases) -> Iterator[tuple[str, str]]:
    """Yield the path and reason of each type or field of the writer for which the reader's aliases are ambiguous."""
    became: dict[str, str] = {}
    for path, named in writer.named:
        name = brief(named.name)
        claims = [claim for claim in aliases.claims.get(named.name, ()) if claim != named.name]
        if claims and named.name in aliases.types:
            yield path, f"{name} is a type of the reader's and an alias of {brief(claims[0])} too"
        elif len(claims) > 1:
            yield path, f"{name} is an alias of {brief(claims[0])} and of {brief(claims[1])}"
        new = claims[0] if claims else named.name
        if new in became:
            yield path, f"{brief(became[new])} and {name} would both be read as {brief(new)}"
        became[new] = named.name
        yield from _field_ambiguities(path, named, aliases.types.get(new))


def _field_ambiguities(path: str, writer: Named, reader: Named | None) -> Iterator[tuple[str, str]]:
    if not isinstance(writer, Record) or not isinstance(reader, Record):
        return
    claims: dict[str, list[str]] = {}
    names = {field.name for field in reader.fields}
    for field in reader.fields:
        for alias in field.aliases:
            claims.setdefault(alias, []).append(field.name)
    became: dict[str, str] = {}
    for field in writer.fields:
        name, place = brief(field.name), f"{path}.{brief(field.name)}"
        claimed = claims.get(field.name, [])
        if claimed and field.name in names:
            yield place, f"{name} is a field of the reader's and an alias of {brief(claimed[0])} too"
        elif len(claimed) > 1:
            yield place, f"{name} is an alias of {brief(claimed[0])} and of {brief(claimed[1])}"
        new = claimed[-1] if claimed else field.name
        if new in became:
            yield place, f"{brief(became[new])} and {name} would both be read as {brief(new)}"
        became[new] = field.name


def _stale_defaults(writer: Aliases, aliases: Aliases) -> Iterator[tuple[str, str]]:
    """Yield the path and reason of each field whose default Avro Java refuses once it has applied the reader's aliases.

    Its default names a field that the aliases rename.
    """
    renames: dict[str, dict[str, str]] = {}
    records = [(path, named) for path, named in writer.named if isinstance(named, Record)]
    for _, named in records:
        claims = [claim for claim in aliases.claims.get(named.name, ()) if claim != named.name]
        reader = aliases.types.get(claims[0] if claims else named.name)
        by_alias = aliases.fields(reader) if isinstance(reader, Record) else {}
        new = {field.name: by_alias[field.name].name for field in named.fields if field.name in by_alias}
        if new:
            renames[named.name] = new
    for path, named in records if renames else ():
        for field in named.fields:
            if field.default is not ABSENT and not is_accepted(field.type, field.default, renames):
                reason = "its default has a field under its old name, which Avro Java, and Spark with it, does not find"
                yield f"{path}.{brief(field.name)}", reason
