"""Compatibility levels, and what they require of a schema (Confluent's documentation, "Compatibility types")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from cdcavro.avro.compatibility import Direction, Problem, Remark, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdcavro.avro.schema import Schema

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


def checked_level(level: Any) -> Level:
    """Return the level with a name, in any case. Raises ValueError if there is none.

    >>> checked_level("full")
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
    """The judgement of a compatibility level on a new schema.

    Attributes: `level`; `verdicts`, for each version that the level covers, its number and the verdict on
    the new schema as reader of that version as writer.
    """

    level: Level
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
