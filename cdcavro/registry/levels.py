"""Compatibility levels, and what they ask of a schema (Confluent's documentation, "Compatibility types")."""

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
    """Check the name of a level. Raises ValueError.

    >>> checked_level("full")
    'FULL'
    """
    wanted = level.upper() if isinstance(level, str) else level
    for one in LEVELS:
        if one == wanted:
            return one
    raise ValueError(f"a compatibility level is one of {', '.join(LEVELS)}")


def is_transitive(level: Level) -> bool:
    """Return whether a level looks at all versions, not only at the latest."""
    return level.endswith(_TRANSITIVE)


@dataclass(frozen=True, slots=True)
class LevelCheck:
    """What a level makes of a new schema.

    Attributes: `level`; `verdicts`, for each version that the level looks at its number and the
    verdict of the new schema as reader on it as writer.
    """

    level: Level
    verdicts: tuple[tuple[int, Verdict], ...]

    @property
    def breaks(self) -> tuple[str, ...]:
        """The reasons why the level refuses the schema; none if it does not."""
        asked = _ASKED[self.level.removesuffix(_TRANSITIVE)]
        return tuple(
            f"version {version}: {problem}"
            for version, said in self.verdicts
            for problem in said.problems
            if problem.direction in asked
        )

    @property
    def verdict(self) -> Verdict:
        """The verdicts as one, each problem and note once."""
        problems: dict[Problem, None] = {}
        notes: dict[Remark, None] = {}
        for _, said in self.verdicts:
            problems |= dict.fromkeys(said.problems)
            notes |= dict.fromkeys(said.notes)
        return Verdict(tuple(problems), tuple(notes))


def judge(new: Schema, versions: Iterable[tuple[int, Schema]], level: Level) -> LevelCheck:
    """Judge a schema by the versions that its level looks at."""
    return LevelCheck(level, tuple((number, verdict(new, old)) for number, old in versions))
