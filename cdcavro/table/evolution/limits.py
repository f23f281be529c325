"""Limits of memory that all tables of a stream share, and what is remembered of lists of columns within them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from cdcavro.errors import SchemaError
from cdcavro.exact.caching import WeightedCache, text_size, weight_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable

    from cdcavro.change.model import Column, Source
    from cdcavro.table.table_schema import TableSchema

MAX_KEPT: Final = 256 << 20
# In characters of the schemas that one text of statements makes, since each version costs as much as its whole schema.
MAX_AT_ONCE: Final = 2 << 20
_UNCOUNTED: Final = -1
# What is remembered of a list of columns: the indexes of the versions of its changes, and its `ColumnDigests`.
SETTLED: Final = "ready"
DIGESTS: Final = "listed"
# In columns, as `weight_of` counts them; each takes about half a kilobyte.
_REMEMBERED: Final = 50_000
_CHARACTERS: Final = 500
# What a count takes beside the name that is counted.
_COUNT: Final = 150
OTHERS: Final = "other columns"


class SharedLimits:
    """What all tables of a stream share.

    Fields:

    * `left` (int), how many bytes may still be kept
    * `edits` (int), how often a table, its versions or its name were changed
    * `remembered` (`WeightedCache`), facts of lists of columns, as long as there is room
    * `counted` (int), how many names were counted in this process
    """

    __slots__ = ("_taken", "counted", "edits", "left", "remembered")

    def __init__(self) -> None:
        self.left = MAX_KEPT
        self.edits = self.counted = 0
        self._taken = _UNCOUNTED
        self.remembered = WeightedCache(_REMEMBERED)

    def __getstate__(self) -> tuple[int, int]:
        """Return the state for another process, which remembers for itself."""
        return self.left, self.edits

    def __setstate__(self, state: tuple[int, int]) -> None:
        """Restore the state that another process returned from `__getstate__`."""
        self.__init__()  # type: ignore[misc]
        self.left, self.edits = state

    def begin(self) -> None:
        """Begin a text of statements, whose schemas are counted until `end`."""
        self._taken = 0

    def end(self) -> None:
        """End a text of statements."""
        self._taken = _UNCOUNTED

    def take(self, schema: TableSchema, texts: Iterable[str | None] = (), more: int = 0) -> None:
        """Reserve the bytes of a version, of the texts that are kept with it, and `more` bytes.

        Raises `SchemaError` if too few are left, or if one text makes many schemas of more than 2 Mi characters in all.
        """
        length = len(schema.row.json)
        if self._taken > 0 and self._taken + length > MAX_AT_ONCE:
            raise SchemaError(schema.table.table, f"one text makes schemas of more than {MAX_AT_ONCE} characters")
        self.reserve(schema.size + text_size(texts) + more, schema.table.table)
        if self._taken != _UNCOUNTED:
            self._taken += length

    def recall(self, of: str, edit: int, columns: tuple[Column, ...], source: Source) -> Any:
        """Return what is remembered of the columns of a source since an edit of a table, or None."""
        return self.remembered.get((of, edit, columns, source))

    def remember(self, of: str, edit: int, columns: tuple[Column, ...], source: Source, value: object) -> None:
        """Remember something of the columns of a source since an edit of a table."""
        weight = weight_of(columns) + text_size(structs.astuple(source)) // _CHARACTERS
        self.remembered.put((of, edit, columns, source), value, weight)

    def check(self, size: int, table: str) -> None:
        """Raise `SchemaError` if fewer bytes are left."""
        if size > self.left:
            raise SchemaError(table, f"all tables and their versions take more than {MAX_KEPT} bytes")

    def reserve(self, size: int, table: str) -> None:
        """Reserve bytes for a table, or give some back. Raises `SchemaError` if too few are left."""
        self.check(size, table)
        self.left -= size

    def count(self, counts: Counter[str], names: Iterable[str]) -> None:
        """Count names, those for which there is no room together as `OTHERS`."""
        for name in names:
            known = name if name in counts or self._has_room(name) else OTHERS
            counts[known] += 1
            self.counted += 1

    def _has_room(self, name: str) -> bool:
        size = _COUNT + text_size([name])
        is_room = size <= self.left
        self.left -= size if is_room else 0
        return is_room
