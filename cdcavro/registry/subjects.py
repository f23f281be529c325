"""Subjects: their names by Confluent's strategies, which its serialisers use, and their compatibility levels.

Source: Confluent's documentation, "Subject name strategy" and "Compatibility types".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from cdcavro.avro.compatibility import Direction, Problem, Remark, Verdict, verdict
from cdcavro.avro.types import Named, branch_name
from cdcavro.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdcavro.avro.schema import Schema

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
