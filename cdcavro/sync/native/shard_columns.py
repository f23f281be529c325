"""Shard columns: which columns of a lake table hold those of each of the tables, its shards, that are written into it.

A lake table has the columns of all its shards. Each shard is remembered as it was written last: what it calls its columns,
their types, and which of the lake's columns holds each. So a shard that has not followed a statement yet goes on in the
columns that it had, whatever others call them by now, and what a statement does to the lake table is done once: with the
first shard that brings it. For this, the names that a column of the lake had are remembered in order.

What a column of a shard is, `shard_histories` knows of shards that began alike and follow the same statements: no names, and
no order in which shards follow them, unite two columns of these. Between others, names decide, and those that columns had
before. Where two shards mean different columns by one name, or no type holds the values of both, there is an error, and the
rows of the shard that came later wait until its next statements settle it. By names not every such case is found.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.errors import SchemaError, shown
from cdcavro.lake.evolution import ADD, LENIENT, MARK, RENAME, WIDEN, LakeColumn, steps_to
from cdcavro.sync.native.shard_histories import (
    EarlierNames,
    Kin,
    KinColumn,
    Lineage,
    Point,
    ShardHistory,
    states_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from cdcavro.lake.evolution import Step
    from cdcavro.sync.native.shard_histories import Origin

# What names a column that another one took over from, or was put aside for, behind the name that it had.
_ASIDE: Final = re.compile(r"(?: \((?:until version|dropped|added) [0-9]+\))+\Z")


class ShardColumn(NamedTuple):
    """A column of a shard, as it was written last."""

    # Its field, its name and its type, as those of a `LakeColumn` of the shard's own.
    field: str
    name: str
    type: str
    # The field of the lake's column that holds it, which never changes.
    held: str
    # Which of the names that the lake's column had is the one that the shard has come to; -1 for one before the first.
    seen: int


class HeldNames(NamedTuple):
    """The names of the lake's columns, by their fields, as far as they had several.

    * `names` (dict from str to list of str): those that columns had in the lake, the last one being that of now.
    * `before` (dict from str to list of str): those that shards had given up before the column was added for them, and its
      first name once for each other column that its shard had called so, and that the lake never had under this name.
    * `kins` (sequence of `Kin`): what is known of shards that follow the same statements.
    """

    names: dict[str, list[str]]
    before: dict[str, list[str]]
    kins: Sequence[Kin] = ()

    @classmethod
    def of(cls, text: str) -> HeldNames:
        """Return the names that `text` wrote."""
        names, before, *rest = json.loads(text)
        kins = [(changes, columns) for each in rest for changes, columns in each]
        known = [Kin(one, {field: KinColumn(*facts) for field, facts in columns.items()}) for one, columns in kins]
        return cls(names, before, known)

    @property
    def text(self) -> str:
        """The names as a text, for `of`."""
        return json.dumps(self, separators=(",", ":"))


class SharedColumns(NamedTuple):
    """The columns of a lake table and of one of its shards.

    * `steps` (list of Step): what is to be done to the lake table.
    * `names` (HeldNames)
    * `columns` (list of ShardColumn): those of the shard, dropped ones among them.
    * `point` (`Point` or None): where the shard began; None if that is not known yet.
    """

    steps: list[Step]
    names: HeldNames
    columns: list[ShardColumn]
    point: Point | None


def columns_text(columns: Iterable[ShardColumn]) -> str:
    """Return the columns of a shard as a text, for `columns_of`."""
    return json.dumps([list(column) for column in columns], separators=(",", ":"))


def columns_of(text: str) -> list[ShardColumn]:
    """Return the columns of a shard that `columns_text` wrote."""
    return [ShardColumn(*column) for column in json.loads(text)]


def follow(
    shard: str,
    present: Sequence[LakeColumn],
    names: HeldNames,
    columns: Sequence[ShardColumn],
    steps: Sequence[Step],
    versions: Sequence[Sequence[LakeColumn]],
    point: Point | None,
    live: Mapping[str, Collection[str]],
    can_widen: Callable[[str, str], bool],
) -> SharedColumns:
    """Return what a lake table, with the columns `present`, has behind the steps of one of its shards.

    `shard` is what errors call it; `names`, `columns` and `point` are as in `SharedColumns`, `steps` those of the shard's
    own columns, `versions` all that it had, `live` has what other shards call their columns now, by the fields of the
    lake's that hold them, and `can_widen` says whether a column of the lake can become one of another type. Raises
    `SchemaError`.
    """
    union = _Union(shard, present, names, EarlierNames.of(versions), live, can_widen)
    pairs, added = _behind(columns, steps)
    point = union.begin(ShardHistory(versions), [new for _, new in pairs], added, point)
    kept = union.rename(pairs)
    for column in kept:
        union.unite(column.held, column.type)
    placed = union.place(added, kept)
    union.settle_names([*kept, *placed])
    wanted = [*union.columns.values()]
    return SharedColumns(
        steps_to(shard, present, wanted, LENIENT, can_widen), union.held_names(point), [*kept, *placed], point
    )


def _behind(
    columns: Sequence[ShardColumn], steps: Sequence[Step]
) -> tuple[list[tuple[ShardColumn, ShardColumn]], list[LakeColumn]]:
    """Return the columns of a shard, each as it was and as it is behind steps, and those that steps add."""
    pairs = {column.name: (column, column) for column in columns}
    added = []
    for step in steps:
        if step.kind == ADD:
            added.append(step.column)
            continue
        changes: dict[str, dict[str, Any]] = {
            RENAME: {"name": step.column.name},
            WIDEN: {"type": step.column.type},
            MARK: {"field": step.column.field},
        }
        old, last = pairs.pop(step.name)
        new = last._replace(**changes[step.kind])
        pairs[new.name] = old, new
    return [*pairs.values()], added


def is_aside(name: str) -> bool:
    """Return whether a column has this name since another one took over from it, or took its name."""
    return _ASIDE.search(name) is not None


def _taken(name: str) -> str:
    return f"a column becomes {shown(name)}, which is the name of another column in other shards"


def _same_name(name: str) -> str:
    """Return what is the same for names that lakes do not tell apart, and for those by which shards put a column aside."""
    return _ASIDE.sub(" ()", name).casefold()


class _Union:
    """The columns of a lake table by their fields, but those that somebody else has added, which have none."""

    def __init__(
        self,
        shard: str,
        present: Sequence[LakeColumn],
        names: HeldNames,
        earlier: EarlierNames,
        live: Mapping[str, Collection[str]],
        can_widen: Callable[[str, str], bool],
    ) -> None:
        self._shard, self._earlier, self._live, self._can_widen = shard, earlier, live, can_widen
        self.columns = {column.field: column for column in present if column.field}
        self._present = {field: column.name.casefold() for field, column in self.columns.items()}
        self.names = {field: [*names.names.get(field, ())] for field in self.columns}
        self._before = {field: [*names.before.get(field, ())] for field in self.columns}
        for field, own in self.names.items():
            if not own or own[-1] != self.columns[field].name:
                own.append(self.columns[field].name)
        # The columns of the shard by those that hold them.
        self._own: dict[str, ShardColumn] = {}
        self._kins = [
            Kin(kin.changes, {field: one for field, one in kin.columns.items() if field in self.columns})
            for kin in names.kins
        ]
        # What the columns of the shard are in its kin, and which of the lake's hold those of the kin; nothing as long as
        # it is not known where the shard began.
        self._lineage = Lineage([], {}, {}, set())
        self._kin: dict[str, KinColumn] = {}
        # The columns of the kin behind the last of its statements.
        self._last: set[Origin] = set()
        # Where new columns of the shard are held wherever it began, by their fields.
        self._agreed: dict[str, str] = {}
        self._spelled: dict[str, str] = {}

    def held_names(self, point: Point | None) -> HeldNames:
        """Return the names of columns that had several, and what is known of the kins of shards."""
        several = {field: own for field, own in self.names.items() if len(own) > 1}
        if point is not None:
            known, own = self._kins[point.kin].changes, self._lineage.changes
            self._kins[point.kin] = Kin(own if own[: len(known)] == known else known, self._kin)
        return HeldNames(several, {field: own for field, own in self._before.items() if own}, self._kins)

    def begin(
        self, history: ShardHistory, kept: Sequence[ShardColumn], added: Sequence[LakeColumn], point: Point | None
    ) -> Point | None:
        """Learn what the columns of a shard are in its kin, and return where it began; None as long as that is not known.

        Raises `SchemaError` if it may have begun where its new columns are not the same.
        """
        self._spelled = history.spelled
        if point is not None and not history.fits(self._kins[point.kin].changes[: point.before + 1]):
            point = None
        points = [point] if point is not None else history.points(self._kins)
        lineages = [(one, history.lineage(self._kins[one.kin].changes[: one.before + 1])) for one in points]
        if point is None:
            lineages = [(one, lineage) for one, lineage in lineages if self._is_possible(one, lineage, kept, added)]
        if len(lineages) > 1:
            self._agreed = {column.field: self._agreed_field(column, lineages) for column in added}
            return None
        if not lineages:
            self._kins.append(Kin([], {}))
            lineages = [(Point(len(self._kins) - 1, 0), history.lineage([]))]
        ((found, self._lineage),) = lineages
        known, own = self._kins[found.kin].changes, self._lineage.changes
        self._kin = dict(self._kins[found.kin].columns)
        # What others have done behind that, or instead of it, counts, too.
        others = set(states_of(known)[-1].values()) if known else set()
        is_behind = own == known[: len(own)]
        self._last = others if is_behind else self._lineage.last | (others - self._lineage.names.keys())
        return found

    def _is_possible(
        self, point: Point, lineage: Lineage, kept: Sequence[ShardColumn], added: Sequence[LakeColumn]
    ) -> bool:
        """Return whether a shard may have begun at a point, as those of its columns are held that it had, and by types."""
        columns = self._kins[point.kin].columns
        holders: dict[Origin | None, str] = {one.origin: field for field, one in columns.items()}
        for column in kept:
            origin = lineage.origins.get(column.field)
            if origin is not None and holders.get(origin, column.held) != column.held:
                return False
            if origin is not None and column.held in columns and columns[column.held].origin != origin:
                return False
        held = {column.held for column in kept}
        wanted = [(holders.get(lineage.origins.get(column.field)), column.type) for column in added]
        return all(field is None or (field not in held and self._fits(field, type)) for field, type in wanted)

    def _agreed_field(self, column: LakeColumn, lineages: Sequence[tuple[Point, Lineage]]) -> str:
        """Return the field of the lake's column that is that of a shard, wherever it began; raise `SchemaError` if none is."""
        fields: dict[str | None, None] = {}
        for point, lineage in lineages:
            columns = self._kins[point.kin].columns
            holders: dict[Origin | None, str] = {one.origin: field for field, one in columns.items()}
            fields[holders.get(lineage.origins.get(column.field))] = None
        first, *others = fields
        if first is None or others:
            known = sorted(
                (self.columns[one].name for one in fields if one is not None), key=lambda one: (len(one), one)
            )
            new = ", or another one" if None in fields else ""
            raise SchemaError(
                self._shard,
                f"column {shown(column.name)} may be {' or '.join(map(shown, known)) or 'one'} of other shards{new}",
            )
        return first

    def rename(self, pairs: Sequence[tuple[ShardColumn, ShardColumn]]) -> list[ShardColumn]:
        """Give columns the new names that a shard has for them, unless others have given them these before.

        Return the shard's columns. Raises `SchemaError` for a column to which another shard has given another name, and for
        a name that another column has.
        """
        if not self._lineage.changes:
            return [new for _, new in pairs]
        found, aside = [], []
        called = {column.name.casefold(): field for field, column in self.columns.items()}
        for old, new in pairs:
            origin = self._lineage.origins.get(new.field)
            if origin is not None and old.held in self._kin:
                found.append(new._replace(seen=self._extend(old.held, origin)))
                continue
            own, last = self.names[old.held], old
            for name in self._path(old, new):
                seen = self._seen(last, name)
                if seen == len(own) and is_aside(name):
                    aside.append((old.held, name))
                elif seen == len(own):
                    self._check_free(called.get(name.casefold(), old.held), old.held, name)
                    self._put_name(old.held, name)
                last = last._replace(name=name, seen=seen)
            found.append(new._replace(seen=last.seen))
            if origin is not None:
                self._kin[old.held] = KinColumn(origin.number, last.seen, self._lineage.names[origin])
        for field, name in aside:
            self._check_left(field)
            self._put_name(field, self._free_name(name))
        return found

    def _extend(self, field: str, origin: Origin) -> int:
        """Give a column of the kin the names that it has in a shard that is further; return which of its names is the last.

        Raises `SchemaError` for one that has others.
        """
        ours, known = self._lineage.names[origin], self._kin[field]
        if known.origin == origin and ours == known.names[: len(ours)]:
            return known.seen
        if known.origin != origin:
            raise SchemaError(self._shard, f"column {shown(ours[-1])} is another one than before")
        if known.names != ours[: len(known.names)]:
            at = next(i for i, (one, other) in enumerate(zip(ours, known.names, strict=False)) if one != other)
            raise SchemaError(
                self._shard,
                f"column {shown(ours[at - 1])} becomes {shown(ours[at])}, and {shown(known.names[at])} in other shards",
            )
        last = ShardColumn(field, known.names[-1], "", field, known.seen)
        for name in ours[len(known.names) :]:
            seen = self._seen(last, name)
            if seen == len(self.names[field]):
                self._put_name(field, self._spelled.get(name, name))
            last = last._replace(name=name, seen=seen)
        self._kin[field] = KinColumn(known.number, last.seen, ours)
        return last.seen

    def settle_names(self, columns: Sequence[ShardColumn]) -> None:
        """Put columns aside whose name another one has now. Raises `SchemaError` for one that some other shard calls so."""
        named: dict[str, list[str]] = {}
        for field, column in self.columns.items():
            named.setdefault(column.name.casefold(), []).append(field)
        own = {column.held: column.name for column in columns if is_aside(column.name)}
        for name, fields in [(name, fields) for name, fields in named.items() if len(fields) > 1]:
            last = [field for field in fields if field in self._kin and self._kin[field].origin in self._last]
            if len(last) > 1 or any(field not in self._kin for field in fields):
                raise SchemaError(self._shard, _taken(self.columns[fields[0]].name))
            (kept,) = last or [next((one for one in fields if self._present.get(one) == name), fields[0])]
            for field in (one for one in fields if one != kept):
                self._put_aside(field, kept, own.get(field))

    def _put_aside(self, field: str, kept: str, own: str | None) -> None:
        """Put a column aside, for one with its name, under the name that the shard has for it, if it has one."""
        name = self.columns[field].name
        if self._present.get(field) is None:
            self.names[field].pop()
            self._put_name(field, self._free_name(name))
        else:
            if self._present[field] == name.casefold():
                self._check_yields(field, name, is_new=kept not in self._present)
            self._put_name(field, self._free_name(own or f"{name} (dropped 1)"))
        self._kin[field] = self._kin[field]._replace(seen=len(self.names[field]) - 1)

    def _check_yields(self, field: str, name: str, *, is_new: bool) -> None:
        if name.casefold() not in map(str.casefold, self._live.get(field, ())):
            return
        if not is_new:
            raise SchemaError(self._shard, _taken(name))
        if field in self._own:
            self._check_left(field)
        raise SchemaError(
            self._shard, f"column {shown(name)} is another one than before, and others may not have followed yet"
        )

    def _path(self, old: ShardColumn, new: ShardColumn) -> list[str]:
        """Return the names that a shard gave a column one after another since it was written last."""
        if old.name == new.name:
            return []
        former = list(self._earlier.former.get(new.field, ()))
        later = former[: former.index(old.name)] if old.name in former else []
        return [*reversed(later), new.name]

    def _seen(self, old: ShardColumn, name: str) -> int:
        """Return which of the names of a column is that which a shard gives it; their number for one that is new."""
        own, wanted = self.names[old.held], _same_name(name)
        later = next((i for i in range(old.seen + 1, len(own)) if _same_name(own[i]) == wanted), None)
        if later is not None:
            return later
        if old.seen == len(own) - 1 or _same_name(own[-1]) == _same_name(old.name):
            return len(own)
        if is_aside(name):
            # Others go on with it, under the name that they have given it.
            return old.seen
        raise SchemaError(
            self._shard, f"column {shown(old.name)} becomes {shown(name)}, and {shown(own[-1])} in other shards"
        )

    def _check_free(self, taken: str, field: str, name: str) -> None:
        """Raise `SchemaError` if a column takes the name of another one that some other shard still calls so."""
        if taken != field and name.casefold() in map(str.casefold, self._live.get(taken, ())):
            raise SchemaError(self._shard, _taken(name))

    def _check_left(self, field: str) -> None:
        """Raise `SchemaError` if a column is put aside that some other shard still has."""
        if self._live.get(field):
            raise SchemaError(
                self._shard,
                f"column {shown(self.columns[field].name)} is another one than before, or has a type that does not fit,"
                " and other shards still have the one before",
            )

    def _put_name(self, field: str, name: str) -> None:
        self.names[field].append(name)
        self.columns[field] = replace(self.columns[field], name=name)

    def _free_name(self, name: str) -> str:
        taken = {column.name.casefold() for column in self.columns.values()}
        numbered = (f"{name} (added {number})" for number in range(1, len(taken) + 2))
        return next(one for one in (name, *numbered) if one.casefold() not in taken)

    def _fits(self, field: str, type: str) -> bool:
        """Return whether a column holds, or can be widened to hold, values of a type."""
        held = self.columns[field].type
        return held == type or self._can_widen(type, held) or self._can_widen(held, type)

    def unite(self, field: str, type: str) -> None:
        """Let a column hold values of a type, too. Raises `SchemaError` if no type holds these and those that it has."""
        column = self.columns[field]
        if not self._fits(field, type):
            raise SchemaError(
                self._shard,
                f"column {shown(column.name)} is {type}, and {column.type} in other shards: neither type holds the values"
                " of the other",
            )
        if column.type != type and not self._can_widen(type, column.type):
            self.columns[field] = replace(column, type=type)

    def place(self, added: Sequence[LakeColumn], kept: Sequence[ShardColumn]) -> list[ShardColumn]:
        """Return where the new columns of a shard are held: each in a column that other shards have, or in a new one.

        `kept` are the columns that the shard had. Raises `SchemaError` where it cannot be known.
        """
        self._own = {column.held: column for column in kept}
        # Those come last whose names others of the shard had before, which say more, or others of the lake.
        for column in sorted(added, key=lambda one: (bool(self._earlier.others(one)), len(self._had(one.name)))):
            placed = self._placed_in_kin(column) or self._placed(column)
            self.unite(placed.held, column.type)
            self._own[placed.held] = placed
            origin = self._lineage.origins.get(column.field)
            if origin is not None and placed.held not in self._kin:
                self._kin[placed.held] = KinColumn(origin.number, placed.seen, self._lineage.names[origin])
            known = [*self._before[placed.held], *self.names[placed.held]]
            former = self._earlier.former.get(column.field, ())
            for name in (one for one in former if one not in known):
                # Once more for each other column that was called so, as in `_placed`.
                self._before[placed.held] += [name, *(name for _ in self._left(replace(column, name=name)))]
        return [one for one in self._own.values() if one not in kept]

    def _placed_in_kin(self, column: LakeColumn) -> ShardColumn | None:
        """Return a new column of a shard with that of its kin which holds it; None if the lake does not have it yet."""
        if not self._lineage.changes:
            return ShardColumn(column.field, column.name, column.type, self._agreed[column.field], 0)
        origin = self._lineage.origins.get(column.field)
        field = next((field for field, one in self._kin.items() if one.origin == origin), None)
        if origin is None or field is None:
            return None
        if field in self._own:
            raise SchemaError(
                self._shard,
                f"column {shown(column.name)} is added, and other shards call so what is {shown(self._own[field].name)} here",
            )
        return ShardColumn(column.field, column.name, column.type, field, self._extend(field, origin))

    def _placed(self, column: LakeColumn) -> ShardColumn:
        """Return a new column of a shard with the lake's column that holds it, which may get its name."""
        found = self._held_now(column)
        if found is not None:
            return ShardColumn(column.field, column.name, column.type, *found)
        for name in self._earlier.former.get(column.field, ()):
            # It was renamed before the shard was seen with it.
            earlier = self._held_now(replace(column, name=name), is_earlier=True)
            if earlier is not None:
                old = ShardColumn(column.field, name, column.type, *earlier)
                return self.rename([(old, old._replace(name=column.name))])[0]
        taken = self._named(column.name)
        if taken is not None and not is_aside(column.name):
            # With a type that does not fit: that is said of the column.
            return ShardColumn(column.field, column.name, column.type, taken, 0)
        held, seen = self._add(column)
        # Of others that were called so before the lake table knows by this alone.
        self._before[held] = [column.name for _ in self._left(column)]
        return ShardColumn(column.field, column.name, column.type, held, seen)

    def _named(self, name: str) -> str | None:
        return next((one for one, held in self._others() if held.name.casefold() == name.casefold()), None)

    def _others(self) -> list[tuple[str, LakeColumn]]:
        """Return the columns, by their fields, of which it is not known what they are in the kin of the shard."""
        return [(field, column) for field, column in self.columns.items() if field not in self._kin]

    def _held_now(self, column: LakeColumn, *, is_earlier: bool = False) -> tuple[str, int] | None:
        """Return the field of the lake's column that has, or had, the name of a shard's, and which of its names that is.

        None if there is none for this type. With `is_earlier`, it is no name that the shard still has.
        """
        if is_aside(column.name):
            field = self._aside_of(column)
            return None if field is None else (field, len(self.names[field]) - 1)
        current = self._named(column.name)
        if current in self._own:
            if is_earlier:
                return None
            raise SchemaError(
                self._shard,
                f"column {shown(column.name)} is added, and other shards call so what is"
                f" {shown(self._own[current].name)} here",
            )
        found = self._former(column)
        if current is not None and self._fits(current, column.type):
            if self._left(column) if is_earlier else not self._is_sure(column, current):
                raise SchemaError(
                    self._shard,
                    f"column {shown(column.name)} is another one than before, and others may not have followed yet",
                )
            newest = current, len(self.names[current]) - 1
            # A name that came back may be the first of them.
            first = [one for one in found if one[0] == current]
            found = [newest] if self._is_last(column, current) else [*first, newest, *found]
        elif found and (self._earlier.others(column) or self._was_another(column.name, found[0][0])):
            raise SchemaError(
                self._shard, f"column {shown(column.name)} may be one that others have renamed, or a new one"
            )
        if len({field for field, _ in found}) > 1:
            called = " or ".join(shown(self.columns[field].name) for field in dict.fromkeys(one[0] for one in found))
            raise SchemaError(self._shard, f"column {shown(column.name)} may be {called} of other shards")
        return found[0] if found else None

    def _had(self, name: str, *, is_all: bool = False) -> list[tuple[str, int]]:
        """Return the columns that had a name before, each with which of its names that was, but for those of the shard.

        Those of its kin, too, are left out unless `is_all`.
        """
        had = []
        for field, names in self.names.items():
            earlier = [*((-1, one) for one in self._before[field]), *enumerate(names[:-1])]
            is_free = field not in self._own and (is_all or field not in self._kin)
            had += [(field, i) for i, one in earlier if is_free and one.casefold() == name.casefold()]
        return had

    def _former(self, column: LakeColumn) -> list[tuple[str, int]]:
        """Return the columns that had the name of a shard's before, as `_held_now` does."""
        return [(field, i) for field, i in self._had(column.name) if self._fits(field, column.type)]

    def _left(self, column: LakeColumn) -> list[str]:
        """Return the fields of the other columns of the shard that were called so, which the lake does not know of them."""
        name, known = column.name.casefold(), set()
        for held, own in self._own.items():
            if name in map(str.casefold, [*self._before[held], *self.names[held]]):
                known.add(own.field)
        return [one for one in self._earlier.others(column) if one not in known]

    def _was_another(self, name: str, held: str) -> bool:
        """Return whether a shard had called another column so than what a column of the lake holds."""
        is_own = name.casefold() in map(str.casefold, self.names[held])
        return [*map(str.casefold, self._before[held])].count(name.casefold()) > (0 if is_own else 1)

    def _is_last(self, column: LakeColumn, current: str) -> bool:
        """Return whether a column has had the names that one of the lake has, behind as many others that were called so."""
        name, before = column.name.casefold(), [*map(str.casefold, self._before[current])]
        had = [(field, i) for field, i in self._had(column.name, is_all=True) if field != current]
        count = len({field for field, _ in had}) + before.count(name)
        own = [*map(str.casefold, reversed(self._earlier.former.get(column.field, ()))), name]
        known = [*(one for one in before if one != name), *map(str.casefold, self.names[current])]
        left = self._left(column)
        is_known = own == known and column.field not in self._earlier.back and all(i >= 0 for _, i in had)
        return bool(left) and len(left) == count and is_known

    def _is_sure(self, column: LakeColumn, held: str) -> bool:
        """Return whether a column of the lake is the one that a shard calls so now, and none that it called so before."""
        was_another = column.name.casefold() in map(str.casefold, self._before[held])
        return self._is_last(column, held) or not (was_another or self._left(column))

    def _aside_of(self, column: LakeColumn) -> str | None:
        """Return the column that holds one that was put aside before the shard was seen; None if there is none."""
        name, free = column.name.casefold(), [one for field, one in self._others() if field not in self._own]
        found = [one for one in free if one.type == column.type and _same_name(one.name) == _same_name(name)]
        exact = [one for one in found if one.name.casefold() == name]
        found = exact or found
        return found[0].field if len(found) == 1 else None

    def _add(self, column: LakeColumn) -> tuple[str, int]:
        numbered = (f"{column.field}~{number}" for number in range(2, len(self.columns) + 3))
        field = next(one for one in (column.field, *numbered) if one not in self.columns)
        # Of two columns of one kin `settle_names` knows which one has the name.
        name = column.name if self._named(column.name) is None else self._free_name(column.name)
        self.columns[field] = LakeColumn(name, field, column.type)
        self.names[field], self._before[field] = [self.columns[field].name], []
        return field, 0
