"""Subjects: their names by Confluent's strategies, their compatibility levels, and the types that their schemas share.

The strategies are those that Confluent's serialisers use.

Source: Confluent's documentation, "Subject name strategy" and "Compatibility types".

Named types that several schemas share are cut out of a schema, fetched by references, and put back in. A registry
stores a shared type once; the schemas that use it name it and refer to its version. Everywhere else in cdcavro a schema
is complete.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from cdcavro.avro.compatibility import Direction, Problem, Remark, Verdict, verdict
from cdcavro.avro.schema import (
    MAX_LENGTH,
    Schema,
    defined_name,
    definitions,
    full_name,
    insert_definitions,
    map_types,
    parse_schema,
    with_own_namespace,
)
from cdcavro.avro.types import PRIMITIVES, Named, branch_name
from cdcavro.errors import SchemaError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from cdcavro.registry.backend import Reference, StoredSchema

    Fetch = Callable[[str, int | None], StoredSchema]

MAX_PARTS: Final = 1000
MAX_CHAIN: Final = 32


@dataclass(slots=True)
class SchemaPart:
    """A type that was cut out of a schema, or the rest of the schema."""

    # The full name of the type, "" for the rest.
    name: str
    # Its JSON.
    text: str = ""
    # The names of the parts that it refers to, in the order in which they must be defined.
    uses: dict[str, None] = field(default_factory=dict)


def split(text: str, names: Collection[str]) -> list[SchemaPart]:
    r"""Return a schema in parts, its types with these names and the rest; each part follows those that it uses.

    `text` is that of a valid schema, `names` are full names. Raises `SchemaError` if there is no such
    type, or if a part uses a type that is defined in none of the parts.

    >>> parts = split('{"type": "record", "name": "a.R", "fields": [{"name": "f", "type": {"type": "fixed", "name": "F", "size": 1}}]}', ["a.F"])
    >>> print(*((part.name, part.text) for part in parts), sep="\n")
    ('a.F', '{"type": "fixed", "name": "F", "size": 1, "namespace": "a"}')
    ('', '{"type": "record", "name": "a.R", "fields": [{"name": "f", "type": "a.F"}]}')
    """
    if not names:
        return [SchemaPart("", text)]
    return _Splitter(frozenset(names)).split(json.loads(text))


class _Splitter:
    """Walks a schema in the specification's order, and keeps track of the part in which each type is defined."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._home: dict[str, str] = {}
        self._parts: list[SchemaPart] = []
        self._open: list[SchemaPart] = [SchemaPart("")]

    def split(self, declared: Any) -> list[SchemaPart]:
        rest = self._open[0]
        rest.text = json.dumps(self._visit(declared, "", 0))
        missing = self._names - {part.name for part in self._parts}
        if missing:
            raise SchemaError("$", f"no type within the schema is called {shown(min(missing))}: it cannot be shared")
        return [*self._parts, rest]

    def _visit(self, declared: Any, space: str, depth: int) -> Any:
        if isinstance(declared, str):
            return declared if declared in PRIMITIVES else self._name(full_name(declared, space, "$"), space)
        full = defined_name(declared, space)
        if full in self._names and depth:
            return self._cut(full, declared, space, depth)
        if full is not None:
            self._home[full] = self._open[-1].name
        return map_types(declared, space, depth, self._visit)

    def _cut(self, full: str, declared: dict[str, Any], space: str, depth: int) -> str:
        part = SchemaPart(full)
        self._open.append(part)
        self._home[full] = full
        part.text = json.dumps(map_types(with_own_namespace(declared, space), space, depth, self._visit))
        self._open.pop()
        self._parts.append(part)
        return self._name(full, space)

    def _name(self, full: str, space: str) -> str:
        own, home = self._open[-1], self._home[full]
        if home == own.name:
            return full
        if not home:
            reason = f"{shown(own.name)} uses {shown(full)}, which is defined outside: share that too"
            raise SchemaError("$", reason)
        if space and "." not in full:
            raise SchemaError("$", f"{shown(full)} has no namespace and cannot be named from within {shown(space)}")
        own.uses[home] = None
        return full


def insert_types(text: str, known: Mapping[str, Any]) -> str:
    """Return a schema's JSON with each known type defined where it is first used; `SchemaError` if that is too long.

    >>> insert_types('{"type": "array", "items": "a.F"}', {"a.F": {"type": "fixed", "name": "a.F", "size": 1}})
    '{"type": "array", "items": {"type": "fixed", "name": "a.F", "size": 1}}'
    """
    whole = json.dumps(insert_definitions(json.loads(text), known))
    if len(whole) > MAX_LENGTH:
        raise SchemaError("text", f"longer than {MAX_LENGTH} characters")
    return whole


def whole_schema(entry: StoredSchema, fetch: Fetch) -> Schema:
    """Return a registered schema, complete with the types that it refers to.

    `fetch` returns a version of a subject. Raises `SchemaError` for an invalid schema, a circular
    reference, more than 1,000 references, or a chain of more than 32.
    """
    if not entry.references:
        return parse_schema(entry.text)
    known: dict[str, Any] = {}
    _gather(entry, fetch, known, {}, ())
    try:
        return parse_schema(insert_types(entry.text, known))
    except (ValueError, RecursionError) as error:
        if isinstance(error, SchemaError):
            raise
        raise SchemaError("text", "not JSON, or nested too deeply") from error


def _gather(
    entry: StoredSchema, fetch: Fetch, known: dict[str, Any], seen: dict[Reference, None], chain: tuple[Reference, ...]
) -> None:
    for reference in entry.references:
        if reference in chain:
            raise SchemaError("references", f"{shown(reference.name)} leads back to itself")
        if reference in seen:
            continue
        seen[reference] = None
        if len(seen) > MAX_PARTS or len(chain) >= MAX_CHAIN:
            raise SchemaError("references", f"more than {MAX_PARTS:,} of them, or {MAX_CHAIN} in a row")
        referenced = fetch(reference.subject, reference.version)
        _gather(referenced, fetch, known, seen, (*chain, reference))
        try:
            known.update(definitions(json.loads(referenced.text)))
        except (ValueError, RecursionError) as error:
            reason = str(error) if isinstance(error, SchemaError) else "not JSON, or nested too deeply"
            raise SchemaError("references", f"{shown(reference.name)}: {reason}") from error


Strategy = Literal["topic", "record", "topic-record"]
STRATEGIES: Final[tuple[Strategy, ...]] = ("topic", "record", "topic-record")
MAX_NAME: Final = 1000
Level = Literal["BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE"]
_ASKED: Final[dict[str, tuple[Direction, ...]]] = {
    "BACKWARD": ("backward",),
    "FORWARD": ("forward",),
    "FULL": ("backward", "forward"),
    "NONE": (),
}
_TRANSITIVE: Final = "_TRANSITIVE"
LEVELS: Final[tuple[Level, ...]] = (
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
)


def subject_name(strategy: Strategy, schema: Schema, *, topic: str | None = None, is_key: bool = False) -> str:
    """Return the name of a schema's subject.

    `strategy` is "topic" (`TOPIC-value`, or `TOPIC-key` for a key), "record" (the full name of the
    record) or "topic-record" (`TOPIC-RECORD`). Raises `SchemaError` if the strategy needs the name
    of a schema that has none, and ValueError for a strategy without its topic or an unknown one.

    >>> from cdcavro.avro.schema import parse_schema
    >>> schema = parse_schema('{"type": "fixed", "name": "a.F", "size": 1}')
    >>> [subject_name(strategy, schema, topic="t") for strategy in STRATEGIES]
    ['t-value', 'a.F', 't-a.F']
    """
    if strategy != "record" and not topic:
        raise ValueError(f"the strategy {strategy} needs a topic")
    match strategy:
        case "topic":
            return f"{topic}-{'key' if is_key else 'value'}"
        case "record":
            return _type_name(schema)
        case "topic-record":
            return f"{topic}-{_type_name(schema)}"
    raise ValueError(f"the strategies are {', '.join(STRATEGIES)}, not {strategy!r}")


def _type_name(schema: Schema) -> str:
    root = schema.root
    if not isinstance(root, Named):
        kind = "union" if not hasattr(root, "name") and hasattr(root, "branches") else branch_name(root)
        raise SchemaError("$", f"expected a type with a name for the subject, got {kind}")
    return root.name


def fault_of_subject(name: object) -> str | None:
    """Return a sentence about what is wrong with a subject's name; None if nothing is."""
    if not isinstance(name, str) or not name:
        return "a subject's name is a text, and not an empty one"
    if len(name) > MAX_NAME:
        return f"a subject's name has at most {MAX_NAME:,} characters"
    if not name.isprintable() or name in (".", ".."):
        return "a subject's name holds no control characters and is neither . nor .."
    return None


def parse_level(level: Any) -> Level:
    """Return the level with a name, in any case. Raises ValueError if there is none.

    >>> parse_level("full")
    'FULL'
    """
    wanted = level.upper() if isinstance(level, str) else level
    for known in LEVELS:
        if known == wanted:
            return known
    raise ValueError(f"a compatibility level is one of {', '.join(LEVELS)}")


def is_transitive(level: Level) -> bool:
    """Return whether a level covers all versions, not only the latest."""
    return level.endswith(_TRANSITIVE)


@dataclass(frozen=True, slots=True)
class LevelCheck:
    """The judgement of a compatibility level on a new schema."""

    # The level that judges.
    level: Level
    # For each version that the level covers, its number, and the verdict on the new schema as its reader.
    verdicts: tuple[tuple[int, Verdict], ...]

    @property
    def breaks(self) -> tuple[str, ...]:
        """The reasons why the level refuses the schema; empty if it accepts it."""
        asked = _ASKED[self.level.removesuffix(_TRANSITIVE)]
        return tuple(
            f"version {version}: {problem}"
            for version, judgement in self.verdicts
            for problem in judgement.problems
            if problem.direction in asked
        )

    @property
    def verdict(self) -> Verdict:
        """The verdicts combined, with each problem and note once."""
        problems: dict[Problem, None] = {}
        notes: dict[Remark, None] = {}
        for _, judgement in self.verdicts:
            problems |= dict.fromkeys(judgement.problems)
            notes |= dict.fromkeys(judgement.notes)
        return Verdict(tuple(problems), tuple(notes))


def judge(new: Schema, versions: Iterable[tuple[int, Schema]], level: Level) -> LevelCheck:
    """Return the judgement of a level on a new schema, given the versions that the level covers."""
    return LevelCheck(level, tuple((number, verdict(new, old)) for number, old in versions))
