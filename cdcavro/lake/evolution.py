"""Evolution of a lake table: the steps that give it the columns of a table's newest version.

The comment of a lake table's column has the name of its Avro field. So a column is found again under any name, and
what was done before a crash is not done twice.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cdcavro.errors import SchemaError, shown
from cdcavro.lake.escaped_names import OWN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

EXCEPTION: Final = "exception"
EVOLVE: Final = "evolve"
TRY_EVOLVE: Final = "try_evolve"
LENIENT: Final = "lenient"
IGNORE: Final = "ignore"
BEHAVIORS: Final = (EXCEPTION, EVOLVE, TRY_EVOLVE, LENIENT, IGNORE)
# How a lake table follows a version that is behind it: nobody asks for it.
BEHIND: Final = "behind"
ADD: Final = "add"
RENAME: Final = "rename"
WIDEN: Final = "widen"
DROP: Final = "drop"
MARK: Final = "mark"
KINDS: Final = (ADD, RENAME, WIDEN, MARK, DROP)
# Kinds of steps that are taken by writing a table's files anew, if it may ask nothing of its readers.
REWRITING: Final = (RENAME, WIDEN, DROP)
# Kinds of statements that lake tables need not follow, in the words of Flink CDC.
ADD_COLUMN: Final = "add.column"
DROP_COLUMN: Final = "drop.column"
RENAME_COLUMN: Final = "rename.column"
ALTER_TYPE: Final = "alter.column.type"
TRUNCATE_TABLE: Final = "truncate.table"
DROP_TABLE: Final = "drop.table"
# What the first column stands behind.
FRONT: Final = ""
STATEMENTS: Final = (ADD_COLUMN, DROP_COLUMN, RENAME_COLUMN, ALTER_TYPE, TRUNCATE_TABLE, DROP_TABLE)
# Types whose values a smaller one of them holds exactly or refuses.
_INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
_DECIMAL: Final = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")


@dataclass(frozen=True, slots=True)
class LakeColumn:
    """A column of a lake table."""

    name: str
    # The name of its Avro field, or of one that it was renamed from.
    field: str
    # As Spark spells it.
    type: str
    # Names that the field had.
    aliases: tuple[str, ...] = ()
    # The last version that wrote it, if another column took over.
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a lake table's columns."""

    # One of `KINDS`.
    kind: str
    # The column's name before the step.
    name: str
    # The column behind the step.
    column: LakeColumn
    # The name of the column behind which an added one is put, or `FRONT`; None if it becomes the last one.
    after: str | None = None

    def __str__(self) -> str:
        """Return the step as a sentence's part."""
        changes = {
            ADD: "is added",
            RENAME: f"is renamed to {shown(self.column.name)}",
            WIDEN: f"becomes {self.column.type}",
            DROP: "is dropped",
        }
        noted = f"gets the values of the schema's field {shown(self.column.field)} from now on"
        return f"column {shown(self.name)} {changes.get(self.kind, noted)}"


def same_column(columns: Iterable[LakeColumn], wanted: LakeColumn) -> LakeColumn | None:
    """Return the column of a lake table that holds the field of a wanted one, or None."""
    by_field = {column.field: column for column in columns}
    return next((by_field[name] for name in (wanted.field, *wanted.aliases) if name in by_field), None)


def steps_to(
    table: str,
    present: Sequence[LakeColumn],
    wanted: Sequence[LakeColumn],
    behavior: str,
    can_widen: Callable[[str, str], bool],
    excluded: Collection[str] = (),
    spelled: Callable[[str], str] = str,
    dropped: Sequence[LakeColumn] = (),
) -> list[Step]:
    """Return the steps from the columns of a lake table to those of a version, as a behavior allows.

    `dropped` are those of the lake's columns that the version has not, with the types that they had last: one that stays
    is widened, as rows from before its statement may need it.

    Of what statements of the kinds `excluded`, some of `STATEMENTS`, make of the columns, no step is taken: the lake
    keeps a column, its name or its type, and does not get a new one. What keeps its name goes on under it, and a column
    that would take this name gets a free one. Names that are made here are those that `spelled` makes of them.

    A column of whole numbers or decimals keeps the wider type that the lake has, from a table that was dropped and made again.

    `behavior` is one of Flink CDC's words. With "lenient", columns are added, renamed and widened, and columns that
    the table no longer has stay. With "evolve" these are dropped, and it is an error if a column of another type takes
    over; with "try_evolve" it is none. With "ignore" there are no steps; with "exception" any step is an error. Raises
    `SchemaError`, also for a type that the lake cannot widen, and for one that is not to be followed where the type
    that the lake keeps would round its values; `ValueError` for another word.

    With `BEHIND`, what the lake has came later, or is that of another table which goes on with it: columns are added and
    widened, and those that are there keep their names and fields.
    """
    if behavior not in (*BEHAVIORS, BEHIND):
        raise ValueError(f"a behavior is one of {', '.join(BEHAVIORS)}, not {shown(behavior)}")
    if behavior == IGNORE:
        return []
    if excluded:
        wanted = _allowed(table, present, wanted, excluded, spelled)
    if behavior == BEHIND:
        wanted = _behind(present, wanted, spelled)
    is_dropping = behavior in (EVOLVE, TRY_EVOLVE) and DROP_COLUMN not in excluded
    steps = _steps(table, present, wanted, can_widen, spelled, is_dropping=is_dropping, is_behind=behavior == BEHIND)
    if not is_dropping and behavior != EXCEPTION and ALTER_TYPE not in excluded:
        types = {column.name: column.type for column in present}
        wider = [one for one in dropped if one.type != types[one.name] and can_widen(types[one.name], one.type)]
        steps = [*(Step(WIDEN, one.name, one) for one in wider), *steps]
    if behavior == EVOLVE:
        for column in wanted:
            held = same_column(present, column)
            if column.until is not None and held is not None and held.name != column.name:
                raise SchemaError(
                    table, f"column {shown(held.name)} has another type from version {column.until + 1} on"
                )
    changes = [str(step) for step in steps if step.kind != MARK]
    if behavior == EXCEPTION and changes:
        raise SchemaError(table, f"its lake table would change: {'; '.join(changes)}")
    return steps


def _behind(
    present: Sequence[LakeColumn], wanted: Sequence[LakeColumn], spelled: Callable[[str], str]
) -> list[LakeColumn]:
    """Return the columns of a version that a lake table is to have under the names and fields that it has them under."""
    behind: list[LakeColumn] = []
    taken = {column.name.casefold() for column in present}
    for column in wanted:
        held = same_column(present, column)
        if held is not None:
            behind.append(replace(column, name=held.name, field=held.field))
            continue
        is_free = column.name.casefold() not in taken
        behind.append(column if is_free else replace(column, name=_free_name(column.name, "added", taken, spelled)))
        taken.add(behind[-1].name.casefold())
    return behind


def _allowed(
    table: str,
    present: Sequence[LakeColumn],
    wanted: Sequence[LakeColumn],
    excluded: Collection[str],
    spelled: Callable[[str], str],
) -> list[LakeColumn]:
    """Return the columns that a lake table is to have if statements of the kinds `excluded` are not followed."""
    pairs = [(same_column(present, column), column) for column in wanted]
    pairs = [(found, column) for found, column in pairs if found is not None or ADD_COLUMN not in excluded]
    if ALTER_TYPE in excluded:
        pairs = [(found, column if found is None else _with_type(table, found, column)) for found, column in pairs]
    # The columns that keep their names, because they must, or because another one keeps theirs.
    kept: set[str] = set()
    while True:
        names = {found.name.casefold() for found, _ in pairs if found is not None and found.field in kept}
        more = {
            found.field
            for found, column in pairs
            if found is not None
            and found.field not in kept
            and found.name != column.name
            and ((RENAME_COLUMN if column.until is None else ALTER_TYPE) in excluded or column.name.casefold() in names)
        }
        if not more:
            break
        kept |= more
    allowed: list[LakeColumn] = []
    taken = {column.name.casefold() for column in (*present, *wanted)}
    for found, column in pairs:
        if found is not None:
            allowed.append(replace(column, name=found.name) if found.field in kept else column)
        elif column.name.casefold() in names:
            allowed.append(replace(column, name=_free_name(column.name, "added", taken, spelled)))
            taken.add(allowed[-1].name.casefold())
        else:
            allowed.append(column)
    return allowed


def _with_type(table: str, found: LakeColumn, column: LakeColumn) -> LakeColumn:
    """Return a column with the type that it has in the lake. Raises `SchemaError` if its values would be rounded."""
    old, new = _DECIMAL.fullmatch(found.type), _DECIMAL.fullmatch(column.type)
    is_exact = {found.type, column.type} <= {*_INTEGERS} or (old is not None and new is not None and old[2] == new[2])
    if found.type != column.type and not is_exact:
        raise SchemaError(
            table,
            f"column {shown(column.name)} becomes {column.type}, which is not followed, as {ALTER_TYPE} is excluded, and"
            f" whose values the lake's {found.type} does not hold exactly",
        )
    return replace(column, type=found.type)


def _holds(found: str, type: str) -> bool:
    """Return whether a lake's type, one of whole numbers or decimals, holds all values of a smaller one as they are."""
    if {found, type} <= {*_INTEGERS}:
        return _INTEGERS.index(found) >= _INTEGERS.index(type)
    return is_wider_decimal(type, found, is_scale_free=False)


# Whatever the lake is, and whether there is a changelog.
_ANEW: Final = "move its lake tables away, and the next run begins new ones with the rows that are pending"
_LATE: Final = (
    "only late rows wait, which are of a table that was dropped or of an older version; all others are written"
)


def _steps(
    table: str,
    present: Sequence[LakeColumn],
    wanted: Sequence[LakeColumn],
    can_widen: Callable[[str, str], bool],
    spelled: Callable[[str], str],
    *,
    is_dropping: bool,
    is_behind: bool,
) -> list[Step]:
    pairs = [(same_column(present, column), column) for column in wanted]
    held = {id(found) for found, _ in pairs}
    left = [column for column in present if id(column) not in held]
    steps = [Step(DROP, column.name, column) for column in left if is_dropping]
    renames = [(found.name, column) for found, column in pairs if found is not None and found.name != column.name]
    if not is_dropping:
        wanted_names = {column.name.casefold() for column in wanted}
        renames += [
            (column.name, _set_aside(column, present, wanted, spelled))
            for column in left
            if column.name.casefold() in wanted_names
        ]
    steps += _rename_steps(renames, present)
    before = FRONT
    for found, column in pairs:
        after, before = before, column.name
        if found is None:
            steps.append(Step(ADD, column.name, column, after))
            continue
        if found.type != column.type:
            if can_widen(found.type, column.type):
                steps.append(Step(WIDEN, column.name, column))
            elif not _holds(found.type, column.type):
                said = f"column {shown(column.name)} is {found.type}, which the lake cannot make {column.type}"
                raise SchemaError(table, f"{said}: {_LATE if is_behind else _ANEW}")
        if found.field != column.field:
            steps.append(Step(MARK, column.name, column))
    return steps


def in_front(steps: Sequence[Step], names: Sequence[str]) -> list[Step]:
    """Return the steps of a table with such columns, in order, so that none adds a column behind this project's own.

    A column that would be added there, because what it is to stand behind does, is put behind the last one before them.
    """
    front = list(names[: next((i for i, name in enumerate(names) if name.startswith(OWN)), len(names))])
    placed = []
    for step in steps:
        if step.kind == ADD:
            if step.after != FRONT and step.after not in front:
                step = replace(step, after=front[-1] if front else FRONT)  # noqa: PLW2901  the same step, elsewhere
            front.insert(front.index(step.after) + 1 if step.after else 0, step.name)
        elif step.name in front and step.kind in (RENAME, DROP):
            at = front.index(step.name)
            front[at : at + 1] = [step.column.name] if step.kind == RENAME else []
        placed.append(step)
    return placed


def columns_behind(columns: Sequence[LakeColumn], steps: Sequence[Step]) -> list[tuple[str | None, LakeColumn]]:
    """Return the columns of a table behind steps, each with the name of the one whose values it has; None of a new one."""
    found: list[tuple[str | None, LakeColumn]] = [(one.name, one) for one in columns]
    for step in steps:
        names, new = [one.name for _, one in found], step.column
        if step.kind == ADD:
            at = len(names) if step.after is None else names.index(step.after) + 1 if step.after else 0
            found.insert(at, (None, new))
            continue
        at = names.index(step.name)
        former, held = found[at]
        changed = {
            RENAME: replace(held, name=new.name),
            WIDEN: replace(held, type=new.type),
            MARK: replace(held, field=new.field),
        }
        found[at : at + 1] = [] if step.kind == DROP else [(former, changed[step.kind])]
    return found


def _rename_steps(renames: Sequence[tuple[str, LakeColumn]], present: Sequence[LakeColumn]) -> list[Step]:
    """Return the steps that rename columns; if one takes the name of another, all first get free names."""
    taken = {column.name.casefold() for column in present}
    if not any(column.name.casefold() in taken for _, column in renames):
        return [Step(RENAME, name, column) for name, column in renames]
    between = [(name, f"~~moving {i}", column) for i, (name, column) in enumerate(renames)]
    first = [Step(RENAME, name, LakeColumn(other, column.field, column.type)) for name, other, column in between]
    return first + [Step(RENAME, other, column) for _, other, column in between]


def _set_aside(
    column: LakeColumn, present: Sequence[LakeColumn], wanted: Sequence[LakeColumn], spelled: Callable[[str], str]
) -> LakeColumn:
    """Return a column that its table no longer has, under a free name, since another column has its name now."""
    taken = {other.name.casefold() for other in (*present, *wanted)}
    return LakeColumn(_free_name(column.name, "dropped", taken, spelled), column.field, column.type)


def _free_name(name: str, what: str, taken: Collection[str], spelled: Callable[[str], str]) -> str:
    """Return a name that is not taken, with what became of its column and a number behind it."""
    numbered = (name + spelled(f" ({what} {i})") for i in range(1, len(taken) + 2))
    return next(one for one in numbered if one.casefold() not in taken)


def is_wider_decimal(old: str, new: str, *, is_scale_free: bool) -> bool:
    """Return whether a decimal type holds all values of another; with the same scale, unless `is_scale_free`.

    >>> is_wider_decimal("decimal(12,2)", "decimal(20,4)", is_scale_free=True)
    True
    """
    first, second = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    if first is None or second is None:
        return False
    precision, scale = int(second[1]) - int(first[1]), int(second[2]) - int(first[2])
    return 0 <= scale <= precision and (is_scale_free or scale == 0)


def steps_text(before: Sequence[LakeColumn], steps: Sequence[Step], properties: Mapping[str, str]) -> str:
    """Return steps, the columns before them, and the properties that are set behind them, as a text for `steps_of`."""
    columns = [[one.name, one.field, one.type] for one in before]
    taken = [[one.kind, one.name, [one.column.name, one.column.field, one.column.type], one.after] for one in steps]
    return json.dumps([columns, taken, properties], separators=(",", ":"))


def steps_of(text: str) -> tuple[list[LakeColumn], list[Step], dict[str, str]]:
    """Return what `steps_text` was given."""
    columns, steps, properties = json.loads(text)
    taken = [Step(kind, name, LakeColumn(*column), after) for kind, name, column, after in steps]
    return [LakeColumn(*one) for one in columns], taken, properties


def steps_left(before: Sequence[LakeColumn], steps: Sequence[Step], present: Sequence[LakeColumn]) -> list[Step] | None:
    """Return the steps that are left to take on a table, which now has the columns `present`; None if it has others.

    Of columns of this project, only the names count.
    """
    known = _marks_of(present)
    taken = (
        i for i in range(len(steps), -1, -1) if _marks_of(one for _, one in columns_behind(before, steps[:i])) == known
    )
    done = next(taken, None)
    return None if done is None else list(steps[done:])


def _marks_of(columns: Iterable[LakeColumn]) -> set[tuple[str, ...]]:
    return {(one.name,) if one.name.startswith(OWN) else (one.name, one.field, one.type) for one in columns}
