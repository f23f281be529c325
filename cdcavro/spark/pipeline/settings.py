"""What a pipeline does, apart from where its messages come from: formats, tables, rejects."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from cdcavro.formats.connect_columns import PLACEHOLDER, check_word
from cdcavro.table.tables import Tables
from cdcavro.wire.formats import get_format
from cdcavro.wire.sniff import MIXED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdcavro.files.rejects import MaxRejects
    from cdcavro.spark.pipeline.registries.access import RegistrySettings
    from cdcavro.spark.typed_tables import TableOptions
    from cdcavro.table.ddl.steps import TableName


def _no_options() -> TableOptions:
    return {}


@dataclass(frozen=True)
class Formats:
    """The formats of messages: `given` is one for all, "mixed" to tell it of each message, or one by pattern.

    A pattern is that of topics, or of paths of files (`*`, `?`, `[…]`); the first that fits counts, and what fits none
    is told of each message. Raises `UnknownFormatError`.
    """

    given: str | Mapping[str, str] = MIXED

    def __post_init__(self) -> None:
        """Check the names."""
        for name in [self.given] if isinstance(self.given, str) else self.given.values():
            if name != MIXED:
                get_format(name)

    def told(self, name: str | None) -> str:
        """Return the format of messages from a topic or file, "mixed" if it has to be told of each."""
        if isinstance(self.given, str):
            return self.given
        return next((format for pattern, format in self.given.items() if fnmatchcase(name or "", pattern)), MIXED)


@dataclass(frozen=True)
class Chosen:
    """Which tables are wanted: those whose name fits a pattern of `include`, if there are any, and none of `exclude`.

    A name is `table`, `database.table` or `database.schema.table`, whichever has as many dots as the pattern.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def has(self, table: TableName) -> bool:
        """Return whether a table is wanted."""
        return (not self.include or _fits(table, self.include)) and not _fits(table, self.exclude)


def _fits(table: TableName, patterns: tuple[str, ...]) -> bool:
    parts = [part for part in (table.database, table.schema, table.table) if part is not None]
    names = [".".join(parts[-count:]) for count in range(1, len(parts) + 1)]
    for pattern in patterns:
        dots = pattern.count(".")
        # A name may have dots of its own, and a star must not reach from the database into the table.
        alike = {names[min(dots, len(names) - 1)], *[name for name in names if name.count(".") == dots]}
        if any(fnmatchcase(name, pattern) for name in alike):
            return True
    return False


@dataclass(frozen=True)
class Settings:
    """How messages become rows.

    Attributes: `formats` (`Formats`); `chosen` (`Chosen`); `options` (dict), the arguments of `cdcavro.Tables`;
    `unavailable` (str or None), as in `to_changes`; `rejects` (str or None), the folder for rejects, by default one in
    that of the state; `max_rejects` (`MaxRejects` or None), how many are allowed in all; `merge_every` (int), with how
    many batches rows are written to their tables: those of the others wait in the folder of the state; `framed`
    (`RegistrySettings` or None), the registry whose schemas frame the messages of topics, if they are payloads of wire
    schemas and no text; `rejects_table` and `rejects_topic` (str or None), a lake table, `database.table`, and a topic of
    Kafka where rejects go besides.
    """

    formats: Formats = Formats()
    chosen: Chosen = Chosen()
    options: TableOptions = field(default_factory=_no_options)
    unavailable: str | None = PLACEHOLDER
    rejects: str | None = None
    max_rejects: MaxRejects | None = None
    merge_every: int = 1
    framed: RegistrySettings | None = None
    rejects_table: str | None = None
    rejects_topic: str | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` for options that `Tables` refuses, or a word for unavailable values that is none."""
        if self.merge_every < 1:
            raise ValueError(
                f"rows are written with every batch, every second one and so on, not every {self.merge_every}"
            )
        check_word(self.unavailable)
        self.tables()

    def tables(self) -> Tables:
        """Return tables that know nothing yet."""
        return Tables(**self.options)
