"""SQL statements, as Spark spells them, that change a lake table: its columns, its current state, its floor."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from cdcavro.errors import shown
from cdcavro.lake.escaped_names import OWN, quote
from cdcavro.lake.evolution import ADD, KINDS, LakeColumn, Step

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

KEY: Final = f"{OWN}key"
ORDER: Final = f"{OWN}order"
OLDER: Final = f"{OWN}older"
UNPARSED: Final = f"{OWN}unparsed"
DELETED: Final = f"{OWN}deleted"
AT: Final = f"{OWN}at"
OPERATION: Final = f"{OWN}op"
VERSION: Final = f"{OWN}version"
ABSENT: Final = f"{OWN}absent"
FROM: Final = f"{OWN}from"
TO: Final = f"{OWN}to"
END: Final = f"{OWN}end"
AGAIN: Final = f"{OWN}again"
IS_DELETED: Final = f"{OWN}is_deleted"
GONE: Final = f"{OWN}gone"
DELETED_AT: Final = f"{OWN}deleted_at"
# Which of the tables that are written into one lake table a row is of.
SHARD: Final = f"{OWN}shard"
# The operation of the row before an update, in a changelog.
BEFORE: Final = "b"
FLOOR: Final = "cdcavro.floor"
# The columns that a lake table had when a pipeline adopted it from another one.
ADOPTED: Final = "cdcavro.adopted.columns"
# The columns of a current state beside those of its table, and those of a changelog.
STATE: Final[Mapping[str, str]] = {
    KEY: "binary",
    ORDER: "binary",
    OLDER: "map<string,binary>",
    UNPARSED: "map<string,string>",
}
CHANGELOG: Final[Mapping[str, str]] = {
    OPERATION: "string",
    ORDER: "binary",
    KEY: "binary",
    VERSION: "int",
    UNPARSED: "map<string,string>",
    ABSENT: "array<string>",
}
DELETES: Final[Mapping[str, str]] = {KEY: "binary", ORDER: "binary", AT: "timestamp"}


class ChangeColumn(NamedTuple):
    """A column of lake tables about the change that a row comes from."""

    # What it is called there.
    name: str
    # As Spark spells it.
    type: str
    # The fields of an envelope's source that it has; of several, those that there are, with dots between them.
    fields: tuple[str, ...]
    # Whether they stand beside the envelope, with the typed row.
    is_beside: bool = False


HEADERS: Final = "headers"
CHANGE_COLUMNS: Final[Mapping[str, ChangeColumn]] = {
    "time": ChangeColumn(f"{OWN}time", "timestamp", ("ts_us",)),
    "transaction": ChangeColumn(f"{OWN}transaction", "string", ("transaction",)),
    "source": ChangeColumn(f"{OWN}source", "string", ("tenant", "db", "schema", "table")),
    "connector": ChangeColumn(f"{OWN}connector", "string", ("connector",)),
    "topic": ChangeColumn(f"{OWN}topic", "string", ("topic",)),
    "partition": ChangeColumn(f"{OWN}partition", "int", ("partition",)),
    "offset": ChangeColumn(f"{OWN}offset", "bigint", ("offset",)),
    "file": ChangeColumn(f"{OWN}file", "string", ("message_file",)),
    "line": ChangeColumn(f"{OWN}line", "bigint", ("message_line",)),
    HEADERS: ChangeColumn(f"{OWN}headers", "string", (HEADERS,), is_beside=True),
}
"""The columns about a change that can be chosen, by the words that choose them."""
# The instants that a column of times takes, in microseconds since the epoch: those of the years 1 to 9999.
INSTANTS: Final = (-62_135_596_800_000_000, 253_402_300_799_999_999)


def check_change_columns(words: Iterable[str]) -> None:
    """Raise `ValueError` for a word that chooses no column about a change, and for one that stands twice."""
    seen = set[str]()
    for word in words:
        if word not in CHANGE_COLUMNS:
            raise ValueError(f"columns about a change are {', '.join(CHANGE_COLUMNS)}, not {shown(word)}")
        if word in seen:
            raise ValueError(f"{shown(word)} stands twice among the columns about a change")
        seen.add(word)


def change_types(words: Collection[str]) -> dict[str, str]:
    """Return the types of chosen columns about a change by their names, in the order of `CHANGE_COLUMNS`."""
    return {column.name: column.type for word, column in CHANGE_COLUMNS.items() if word in words}


def held_change_columns(names: Collection[str]) -> dict[str, ChangeColumn]:
    """Return those columns about a change, by their words, that a lake table with columns of such names has."""
    return {word: column for word, column in CHANGE_COLUMNS.items() if column.name in names}


def change_values(names: Collection[str], chosen: Collection[str]) -> dict[str, str]:
    """Return SQL for the columns about changes that a lake table with columns of such names has, by their names.

    They are of a column `source`, that of an envelope, or beside it, and null unless they are chosen.
    """
    return {
        column.name: f"CAST({_change_value(column) if word in chosen else 'NULL'} AS {column.type})"
        for word, column in held_change_columns(names).items()
    }


def _change_value(column: ChangeColumn) -> str:
    fields = [quote(name) if column.is_beside else quote("source", name) for name in column.fields]
    if len(fields) > 1:
        return f"nullif(concat_ws('.', {', '.join(fields)}), '')"
    if column.type == "timestamp":
        return f"CASE WHEN {fields[0]} BETWEEN {INSTANTS[0]} AND {INSTANTS[1]} THEN timestamp_micros({fields[0]}) END"
    return fields[0]


def change_column_steps(own: Mapping[str, str], names: Collection[str]) -> list[Step]:
    """Return the steps that add columns about a change, among those of this project, that a table does not have yet."""
    known = {column.name for column in CHANGE_COLUMNS.values()} - {*names}
    return [Step(ADD, name, LakeColumn(name, name, type)) for name, type in own.items() if name in known]


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def literal(text: str) -> str:
    r"""Return a text as a literal of Spark's SQL.

    Of `${`, for which Spark looks in the whole text of SQL, the first half is its code.

    >>> print(literal("it's"), literal("a\\b"), literal("${x}"))
    'it\'s' 'a\\b' '\u0024{x}'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{") + "'"


def create_table(
    identifier: str,
    columns: Sequence[LakeColumn],
    own: Mapping[str, str],
    using: str,
    properties: Mapping[str, str],
    partition: Sequence[str] = (),
) -> str:
    """Return the statement that creates a lake table unless there is one.

    `own` are columns of this project, and `partition` are expressions by which the table is partitioned.
    """
    listed = [f"{quote(column.name)} {column.type} COMMENT {literal(column.field)}" for column in columns]
    listed += [f"{quote(name)} {declared}" for name, declared in own.items()]
    options = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())
    parted = f" PARTITIONED BY ({', '.join(partition)})" if partition else ""
    return (
        f"CREATE TABLE IF NOT EXISTS {identifier} ({', '.join(listed)}) USING {using}{parted} TBLPROPERTIES ({options})"
    )


def alter_table(identifier: str, step: Step) -> str:
    """Return the statement that takes a step. Raises `ValueError` for a kind of step that is not known."""
    column, name = step.column, quote(step.name)
    field = literal(column.field)
    match step.kind:
        case "add":
            place = "" if step.after is None else f" AFTER {quote(step.after)}" if step.after else " FIRST"
            return f"ALTER TABLE {identifier} ADD COLUMNS ({quote(column.name)} {column.type} COMMENT {field}{place})"
        case "rename":
            return f"ALTER TABLE {identifier} RENAME COLUMN {name} TO {quote(column.name)}"
        case "widen":
            return f"ALTER TABLE {identifier} ALTER COLUMN {name} TYPE {column.type}"
        case "mark":
            return f"ALTER TABLE {identifier} ALTER COLUMN {name} COMMENT {field}"
        case "drop":
            return f"ALTER TABLE {identifier} DROP COLUMN {name}"
    raise ValueError(f"{step.kind} is none of {', '.join(KINDS)}")


def set_properties(identifier: str, properties: Mapping[str, str]) -> str:
    """Return the statement that sets properties of a table."""
    listed = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())
    return f"ALTER TABLE {identifier} SET TBLPROPERTIES ({listed})"


def delete_up_to(identifier: str, column: str, bound: bytes | datetime, shard: str | None = None) -> str:
    """Return the statement that deletes the rows whose value in a column is not above a bound, of one shard if it is given."""
    limit = f"X'{bound.hex()}'" if isinstance(bound, bytes) else f"timestamp_micros({(bound - _EPOCH) // _MICROSECOND})"
    of_shard = "" if shard is None else f" AND {quote(SHARD)} = {literal(shard)}"
    return f"DELETE FROM {identifier} WHERE {quote(column)} <= {limit}{of_shard}"  # noqa: S608  names are quoted


def forget_below(
    identifier: str, columns: Mapping[str, Sequence[str]], texts: Mapping[str, Sequence[str]], floor: bytes
) -> str:
    """Return the statement that takes from the rows above a floor what stood in their columns before it.

    Such rows consist of several changes, some of which lack columns; `columns` and `texts` are as in `merge_state`.
    """
    older, unparsed, least = quote(OLDER), quote(UNPARSED), f"X'{floor.hex()}'"
    since = {name: _since(quote(ORDER), older, names) for name, names in columns.items()}
    sets = [f"{quote(name)} = CASE WHEN {one} > {least} THEN {quote(name)} END" for name, one in since.items()]
    named = " ".join(
        f"WHEN {literal(one)} THEN {since.get(name, quote(ORDER))}" for name, names in texts.items() for one in names
    )
    left = f"map_filter({unparsed}, (name, text) -> CASE name {named} ELSE {quote(ORDER)} END > {least})"
    sets.append(f"{unparsed} = CASE WHEN cardinality({left}) > 0 THEN {left} END")
    nothing = f"CASE WHEN since > {least} THEN since ELSE X'' END"
    sets.append(f"{older} = transform_values({older}, (name, since) -> {nothing})")
    is_below = f"exists(map_values({older}), since -> since > X'' AND since <= {least})"
    return f"UPDATE {identifier} SET {', '.join(sets)} WHERE {is_below}"  # noqa: S608  names are quoted


def _since(order: str, older: str, names: Sequence[str]) -> str:
    """Return SQL for the order of the change that stated a column, of which `older` says more than `order`."""
    return f"coalesce({', '.join([*(f'element_at({older}, {literal(name)})' for name in names), order])})"


def merge_state(
    identifier: str,
    source: str,
    columns: Mapping[str, Sequence[str]],
    *,
    texts: Mapping[str, Sequence[str]] | None = None,
    apart: Collection[str] = (),
    is_guarded: bool = True,
) -> str:
    """Return the statement that merges a batch into a current state, which may be run again.

    `source` has one row for each key: the last change above all floors, its columns, and if `is_guarded`, `_cdc_order`
    null if there is none, and `_cdc_deleted`, the order of the key's last delete, or null. `columns` are the table's,
    each with what `_cdc_older` may call it, as `lake_columns.older_names` has it, and `texts` those that `_cdc_unparsed`
    may have, as `lake_columns.text_names` has them; it is needed with `apart`. Changes may lack those in `apart`:
    `_cdc_older` has the orders of those that are not as old as the row, empty for one that nobody has stated yet.
    """
    order, deleted = quote("s", ORDER), quote("s", DELETED)
    stands = quote("t", ORDER)
    inserted = [*columns, KEY, ORDER, UNPARSED, OLDER]
    plain = ", ".join(f"{quote('t', name)} = {quote('s', name)}" for name in (*columns, ORDER, UNPARSED, OLDER))
    update = f"WHEN MATCHED AND {order} > {stands} THEN UPDATE SET {plain}"
    if apart:
        update = _merge_columns(columns, texts or {}, apart, f"coalesce({deleted}, X'')" if is_guarded else "X''")
    delete = [f"WHEN MATCHED AND {deleted} >= {stands} AND {order} IS NULL THEN DELETE"] if is_guarded else []
    is_there = f" AND {order} IS NOT NULL" if is_guarded else ""
    return "\n".join(
        [
            f"MERGE INTO {identifier} t USING {source} s ON {quote('t', KEY)} = {quote('s', KEY)}",
            *delete,
            update,
            f"WHEN NOT MATCHED{is_there} THEN INSERT ({', '.join(map(quote, inserted))})",
            f"VALUES ({', '.join(quote('s', name) for name in inserted)})",
        ]
    )


def replace_rows(identifier: str, source: str, columns: Sequence[str]) -> str:
    """Return the statement that removes the rows with some keys and inserts others, which may be run again.

    `source` has all columns of the table, `columns`, and `_cdc_gone`: true of one row for each key whose rows are removed,
    false of those that are inserted.
    """
    is_gone, into = quote("s", GONE), ", ".join(map(quote, columns))
    return "\n".join(
        [
            f"MERGE INTO {identifier} t USING {source} s ON {quote('t', KEY)} = {quote('s', KEY)} AND {is_gone}",
            "WHEN MATCHED THEN DELETE",
            f"WHEN NOT MATCHED AND NOT {is_gone} THEN INSERT ({into})",
            f"VALUES ({', '.join(quote('s', name) for name in columns)})",
        ]
    )


def _merge_columns(
    columns: Mapping[str, Sequence[str]], named: Mapping[str, Sequence[str]], apart: Collection[str], floor: str
) -> str:
    """Return the clause that takes each column from the change that stated it last."""
    order, stands = quote("s", ORDER), quote("t", ORDER)

    def since(table: str, name: str) -> str:
        own = quote(table, ORDER)
        if name in apart:
            own = _since(own, quote(table, OLDER), columns[name])
        # What stood before a delete of the key is nothing.
        return f"CASE WHEN {own} > {floor} THEN {own} ELSE X'' END"

    sets = []
    for name in columns:
        is_newer = f"{since('s', name)} > {since('t', name)}"
        kept = f"CASE WHEN {since('t', name)} > X'' THEN {quote('t', name)} END"
        sets.append(f"{quote('t', name)} = CASE WHEN {is_newer} THEN {quote('s', name)} ELSE {kept} END")
    newest = f"greatest({order}, {stands})"
    pairs = ", ".join(
        f"{literal(columns[name][0])}, greatest({since('s', name)}, {since('t', name)})"
        for name in columns
        if name in apart
    )
    older = f"map_filter(map({pairs}), (name, since) -> since <> {newest})"
    sets.append(f"{quote('t', OLDER)} = CASE WHEN cardinality({older}) > 0 THEN {older} END")
    texts = ", ".join(
        f"{literal(one)}, CASE WHEN {since('s', name)} > {since('t', name)} THEN {_text('s', one)}"
        f" WHEN {since('t', name)} > X'' THEN {_text('t', one)} END"
        for name, names in named.items()
        for one in names
    )
    unparsed = f"map_filter(map({texts}), (name, text) -> text IS NOT NULL)"
    sets.append(f"{quote('t', UNPARSED)} = CASE WHEN cardinality({unparsed}) > 0 THEN {unparsed} END")
    sets.append(f"{quote('t', ORDER)} = {newest}")
    # Also without a change: a late delete takes what stood before it from a row that goes on.
    return f"WHEN MATCHED THEN UPDATE SET {', '.join(sets)}"


def _text(table: str, name: str) -> str:
    return f"element_at({quote(table, UNPARSED)}, {literal(name)})"
