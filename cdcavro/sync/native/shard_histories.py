"""Shard histories: which columns of a shard are those of others, as far as they have followed the same statements.

Shards that began with the same columns, and follow the same statements, mean one column by the third that was ever added
under a name. So their columns are told apart by that, however far each has come, and nothing else is needed. A kin are such
shards. It is remembered by what its statements did to names, as far as any of its shards has followed them, and by which of
its columns each of the lake's columns holds. A shard that comes later may have begun at any point of what its kin did: it
is placed where its own columns and statements fit, and waits if there are several such points that say different things.
Of several, it is one from which on others have followed the same: one that is created late, and ahead of all others in
repeating what they did before, is taken for one that lags.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cdcavro.lake.evolution import LakeColumn

    # What a statement does to names: what each column was called, and what it is called now; None for none.
    Changes = list[list[str | None]]


class Origin(NamedTuple):
    """A column of a kin: how it was called first, in lower case, and how many were called so first before it."""

    name: str
    number: int


class KinColumn(NamedTuple):
    """A column of a kin that the lake has.

    * `number` (int): as in `Origin`.
    * `seen` (int): which of the names that the lake's column had is the last one of these.
    * `names` (list of str): those that it had, as far as any shard has followed, in lower case.
    """

    number: int
    seen: int
    names: list[str]

    @property
    def origin(self) -> Origin:
        """Which column it is."""
        return Origin(self.names[0], self.number)


class Kin(NamedTuple):
    """Shards that began with the same columns.

    * `changes` (list of `Changes`): those of each statement, the first one being the columns at the beginning.
    * `columns` (dict from str to `KinColumn`): those that the lake has, by the fields of its own.
    """

    changes: list[Changes]
    columns: dict[str, KinColumn]


class Point(NamedTuple):
    """Where a shard began: the index of a kin, and how many statements of it came before."""

    kin: int
    before: int


class Lineage(NamedTuple):
    """What the columns of a shard are in a kin.

    * `changes` (list of `Changes`): those of the kin before the shard began, and its own.
    * `origins` (dict from str to `Origin`): by the fields that columns of the shard had in any version.
    * `names` (dict from `Origin` to list of str): those that each column had.
    * `last` (set of `Origin`): the columns behind all of these statements.
    """

    changes: list[Changes]
    origins: dict[str, Origin]
    names: dict[Origin, list[str]]
    last: set[Origin]


class ShardHistory:
    """What the versions of a shard did to the names of its columns, but to those that others took over from."""

    def __init__(self, versions: Sequence[Sequence[LakeColumn]]) -> None:
        self.changes: list[Changes] = []
        # By fields, those of a column in any version: in which version it was first there, and what it was called then.
        self._first: dict[str, tuple[int, str]] = {}
        # How names are spelled.
        self.spelled = {column.name.casefold(): column.name for version in versions for column in version}
        # Of each version, behind which of the changes it is.
        self._behind: list[int] = []
        before: dict[tuple[int, str], str] = {}
        for number, version in enumerate(versions):
            now, named = {}, [(column, column.name.casefold()) for column in version if column.until is None]
            for column, name in named:
                known = next((self._first[one] for one in (column.field, *column.aliases) if one in self._first), None)
                first = (number, name) if known is None else known
                now[first] = name
                self._first[column.field] = first
            kept = [[name, now.get(first)] for first, name in before.items() if now.get(first) != name]
            new: Changes = [[None, name] for first, name in now.items() if first not in before]
            gone = [one for one in kept if one[1] is None]
            # In this order, as if they were statements of their own: others may have followed them as such.
            steps = [gone, [one for one in kept if one[1] is not None], new]
            self.changes += [sorted(step, key=str) for step in steps if step or (not self.changes and step is new)]
            self._behind.append(len(self.changes) - 1)
            before = now

    def lineage(self, before: Sequence[Changes]) -> Lineage:
        """Return what the columns are in a kin with such changes up to where the shard began; none if it is the first."""
        changes = [*before, *self.changes[1 if before else 0 :]]
        states, offset = states_of(changes), max(len(before) - 1, 0)
        origins = {field: states[offset + self._behind[i]][name] for field, (i, name) in self._first.items()}
        names: dict[Origin, list[str]] = {}
        for state in states:
            for name, origin in state.items():
                if (own := names.setdefault(origin, []))[-1:] != [name]:
                    own.append(name)
        return Lineage(changes, origins, names, set(states[-1].values()))

    def points(self, kins: Sequence[Kin]) -> list[Point]:
        """Return where the shard may have begun, as its columns fit those of others.

        If there are points from which on others have followed all of its statements, too, it is one of these: a shard that
        comes late is not taken to be the first to repeat what others did.
        """
        found, following, within = [], [], []
        own = self._begins(self.changes[:1])
        for number, kin in enumerate(kins):
            for before, state in enumerate(states_of(kin.changes)):
                if own == state.keys():
                    found.append(Point(number, before))
                    theirs = kin.changes[before + 1 : before + len(self.changes)]
                    following += [found[-1]] if theirs == self.changes[1 : 1 + len(theirs)] else []
                    within += [found[-1]] if theirs == self.changes[1:] else []
        return within or following or found

    def fits(self, before: Sequence[Changes]) -> bool:
        """Return whether the shard may have begun behind such changes of a kin."""
        return self._begins(before) == self._begins(self.changes[:1])

    def _begins(self, changes: Sequence[Changes]) -> set[str]:
        return set(states_of(changes)[-1])


def states_of(changes: Iterable[Changes]) -> list[dict[str, Origin]]:
    """Return the columns behind each statement, by their names."""
    counts, now, found = Counter[str](), dict[str, Origin](), []
    for step in changes:
        moved = {old: now.pop(old) for old, _ in step if old is not None}
        for old, new in step:
            if new is None:
                continue
            now[new] = Origin(new, counts[new]) if old is None else moved[old]
            counts[new] += old is None
        found.append(dict(now))
    return found


class EarlierNames(NamedTuple):
    """What a shard called its columns in its earlier versions.

    * `former` (dict from str to list of str): by their fields, the names of columns that it still has, newest first.
    * `gone` (set of tuple of str): the names of others, each with its field.
    * `back` (set of str): the fields of columns whose name is one that they had before another one.
    """

    former: dict[str, list[str]]
    gone: set[tuple[str, str]]
    back: set[str]

    @classmethod
    def of(cls, versions: Sequence[Sequence[LakeColumn]]) -> EarlierNames:
        """Return the names that the columns of the last version had in those before it."""
        *earlier, newest = versions
        own = {name: column for column in newest for name in (*column.aliases, column.field)}
        found = cls({column.field: [] for column in newest}, set(), set())
        for column in (column for version in reversed(earlier) for column in version):
            held = own.get(column.field)
            if held is None:
                found.gone.add((column.name.casefold(), column.field))
            elif column.name == held.name:
                found.back.update([held.field] if found.former[held.field] else [])
            elif column.name not in found.former[held.field]:
                found.former[held.field].append(column.name)
        return found

    def others(self, column: LakeColumn) -> list[str]:
        """Return the fields of the other columns that had a column's name, those among them that there are no longer."""
        name = column.name.casefold()
        held = [field for field, names in self.former.items() if name in map(str.casefold, names)]
        return [
            *(field for field in held if field != column.field),
            *(field for gone, field in self.gone if gone == name),
        ]
