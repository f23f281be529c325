"""Histories of tables as records of DTS and as packets of Canal, drawn at random, and the rows that they end with.

    python tests/support/binary_streams.py dts_avro|canal_protobuf COUNT [SEED]

runs as many histories through `cdcavro sync --local`, from partitions and from files; processes that read files are killed
at random calls of functions. The rows in the end are replayed here in plain Python.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import traceback
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from cdcavro.lake.job_state import JobState
from cdcavro.sync.native.native_tables import locate
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from cdcavro.wire.formats import get_format
from support.canal_packets import column, entry, made, packet
from support.dts_records import instant, packed, record, value
from support.kafka_server import Record
from support.local_kills import Calls
from support.local_pipelines import DELTA, ICEBERG, LocalJob, lake_section, tuples
from support.local_shop import ShopRun, placed

DTS, CANAL = "dts_avro", "canal_protobuf"
FORMATS = (DTS, CANAL)
REPEATS = ("once", "three times", "goes back")
_BEGIN = 1_700_000_000
_TEXTS = ("", "null", "ü", "中文", "a'b\"c`d;", "\\", "😀", "1", "22", "\n\t", "None", " x ")
Row = dict[str, Any]


class Event(NamedTuple):
    """A change of a row, with the columns that the table has then, or a statement; the number is its place in the log."""

    number: int
    kind: str
    table: str
    columns: dict[str, str]
    serial: int = 0
    before: Row | None = None
    after: Row | None = None
    sql: str = ""

    @property
    def place(self) -> tuple[int, int]:
        """The number of the binlog's file, and the offset in it, which is smaller again in the next file."""
        return 9 + self.number // 40, 4 + self.number % 40 * 150


class _Table:
    def __init__(self, lake_name: str) -> None:
        self.lake_name = lake_name
        self.columns = {"id": "bigint", "a": "varchar(20)"}
        self.rows: dict[int, Row] = {}
        self.is_declared = True
        # Whether names of columns are used again; of a table that is made anew, they could not have other types.
        self.has_reused_names = True


class History:
    """The events of a database `d`, in the order of its log, and its rows in the end.

    Fields:

    * `loaded` (list of Event): the rows that there were before, which a full load sends; DTS only.
    * `events` (list of Event)
    * `tables` (dict from a name to a table); `every` has those that are gone, too
    * `has_shifts` (bool): whether a statement moves each row to the key of another one
    """

    def __init__(self, seed: object, format: str) -> None:
        self._draw, self._format = random.Random(f"history {format} {seed}"), format
        self.tables: dict[str, _Table] = {}
        self.every: list[_Table] = []
        self.events: list[Event] = []
        self.loaded: list[Event] = []
        self._number = self._named = self._serial = 0
        self.has_shifts, self._is_shifting = False, self._draw.random() < 0.5
        self._next = 1
        for name in ("t", "Other", "we'ird `t", "中")[: self._draw.randrange(1, 5)]:
            self._create(name)
        for _ in range(self._draw.choice((10, 40, 120))):
            name = self._draw.choice([*self.tables])
            if self._draw.random() < 0.12:
                self._statement(name)
            else:
                self._change(name)
        for name in [*self.tables]:
            # A statement about columns changes the lake with the next row.
            self._insert(name)

    def _add(self, kind: str, table: str, *, is_more: bool = False, **facts: Any) -> None:
        self._number += 0 if is_more else self._draw.choice((1, 1, 1, 30))
        self._serial += 1
        columns = dict(self.tables[table].columns) if table in self.tables else {}
        # The rows of the table change with it, those of an event do not.
        facts = {name: dict(fact) if isinstance(fact, dict) else fact for name, fact in facts.items()}
        self.events.append(Event(self._number, kind, table, columns, self._serial, **facts))

    def _create(self, name: str, *, is_again: bool = False) -> None:
        draw = self._draw
        table = self.tables[name] = _Table(name)
        self.every.append(table)
        table.has_reused_names = not is_again and draw.random() < 0.5
        for _ in range(draw.randrange(4)):
            self._add_column(table)
        if draw.random() < 0.8 or self.events:
            columns = ", ".join(f"`{one}` {type}" for one, type in table.columns.items())
            self._sql(name, f"CREATE TABLE {_quoted(name)} ({columns}, PRIMARY KEY (`id`))")
            return
        table.is_declared = False
        table.columns = {one: "varchar(20)" if one != "id" else "bigint" for one in table.columns}
        for _ in range(draw.randrange(5) if self._format == DTS else 0):
            row = self._row(table)
            table.rows[row["id"]] = row
            self.loaded.append(Event(0, "INIT", name, dict(table.columns), after=dict(row)))

    def _sql(self, table: str, sql: str) -> None:
        self._add("DDL", table, sql=sql)

    def _add_column(self, table: _Table) -> tuple[str, str]:
        self._named += 1
        reused = ("x", "y") if table.has_reused_names else ()
        gone = [one for one in (*reused, f"c{self._named}") if one not in table.columns]
        name, type = self._draw.choice(gone), self._draw.choice(_TYPES)
        table.columns[name] = type
        return name, type

    def _row(self, table: _Table) -> Row:
        self._next += 1
        return {name: self._next if name == "id" else self._value(type) for name, type in table.columns.items()}

    def _value(self, type: str) -> Any:
        draw = self._draw
        if draw.random() < 0.2:
            return None
        number = draw.choice((0, 7, -1, 2**31 - 1, draw.randrange(-(10**6), 10**6)))
        if type == "varchar(40)":
            return draw.choice((*_TEXTS, "x" * 40))
        second = datetime.fromtimestamp(draw.randrange(2 * 10**9), UTC).replace(tzinfo=None)
        return {
            "int": number,
            "bigint": draw.choice((number, 2**63 - 1, -(2**63))),
            "varchar(20)": draw.choice(_TEXTS),
            "decimal(10,2)": f"{number % 10**8}.{abs(number) % 90 + 10}",
            "decimal(14,2)": f"{number % 10**8}.{abs(number) % 90 + 10}",
            "double": draw.choice((0.1, 1e22, -2.5, 5e-324, float(number))),
            "date": str(second.date()),
            "datetime": str(second),
            "datetime(6)": f"{second}.{draw.randrange(1, 10**6):06}",
            "blob": draw.choice((b"", b"\x00\xff", "ü".encode(), b"YWJj", bytes(range(256)))),
        }[type]

    def _insert(self, name: str) -> None:
        # All rows of a statement have its place.
        for i in range(self._draw.choice((1, 1, 1, 4))):
            row = self._row(self.tables[name])
            self.tables[name].rows[row["id"]] = row
            self._add("INSERT", name, after=row, is_more=i > 0)

    def _shift(self, name: str) -> None:
        """Move rows to the next key, the last first, in one statement."""
        self.has_shifts, rows = True, self.tables[name].rows
        for i, key in enumerate(sorted(rows, reverse=True)):
            before = rows.pop(key)
            rows[key + 1] = {**before, "id": key + 1}
            self._next = max(self._next, key + 1)
            self._add("UPDATE", name, before=before, after=rows[key + 1], is_more=i > 0)

    def _change(self, name: str) -> None:
        draw, rows = self._draw, self.tables[name].rows
        kind = draw.choice(("INSERT", "INSERT", "UPDATE", "UPDATE", "MOVE", "DELETE")) if rows else "INSERT"
        if rows and self._is_shifting and draw.random() < 0.1:
            self._shift(name)
            return
        if kind == "INSERT":
            self._insert(name)
            return
        key = draw.choice([*rows])
        before = rows.pop(key)
        if kind == "DELETE":
            self._add("DELETE", name, before=before)
            return
        types = self.tables[name].columns
        after = {one: self._value(types[one]) if draw.random() < 0.4 and one != "id" else before[one] for one in before}
        if kind == "MOVE":
            # Also to a key that a row had that is gone.
            free = [one for one in range(1, self._next + 2) if one not in rows and one != key]
            after["id"] = draw.choice(free[-8:])
            self._next = max(self._next, after["id"])
        rows[after["id"]] = after
        self._add("UPDATE", name, before=before, after=after)

    def _statement(self, name: str) -> None:
        draw, table = self._draw, self.tables[name]
        begin, others = f"ALTER TABLE {_quoted(name)} ", [one for one in table.columns if one != "id"]
        kind = draw.choice(("add", "add", "drop", "rename", "retype", "truncate", "move", "again", "index"))
        if kind == "add" or (not others and kind in ("drop", "rename")):
            self._sql(name, begin + self._added(table))
        elif kind == "drop":
            one = draw.choice(others)
            del table.columns[one]
            for row in table.rows.values():
                del row[one]
            self._sql(name, f"{begin}DROP COLUMN `{one}`")
        elif kind == "rename":
            self._sql(name, begin + self._renamed(table, draw.choice(others)))
        elif kind == "retype":
            wide = {one: _WIDER[type] for one, type in table.columns.items() if type in _WIDER and one != "id"}
            for one in draw.sample([*wide], min(1, len(wide))):
                table.columns[one] = wide[one]
                self._sql(name, f"{begin}MODIFY `{one}` {wide[one]}")
        else:
            self._table_statement(name, kind)

    def _table_statement(self, name: str, kind: str) -> None:
        table = self.tables[name]
        if kind == "truncate":
            table.rows = {}
            self._sql(name, f"TRUNCATE TABLE {_quoted(name)}")
        elif kind == "move":
            self._named += 1
            self._sql(name, f"RENAME TABLE {_quoted(name)} TO r{self._named}")
            self.tables[f"r{self._named}"] = self.tables.pop(name)
        elif kind == "index":
            self._sql(name, f"CREATE INDEX i ON {_quoted(name)} (`id`)")
        elif name == table.lake_name and table.is_declared and not table.has_reused_names:
            self._sql(name, f"DROP TABLE {_quoted(name)}")
            del self.tables[name]
            self._create(name, is_again=True)

    def _added(self, table: _Table) -> str:
        """Add a column, with a default or without, and return the clause of its statement."""
        new, type = self._add_column(table)
        has_default = type in ("int", "bigint") and self._draw.random() < 0.7
        for row in table.rows.values():
            row[new] = 7 if has_default else None
        return f"ADD COLUMN `{new}` {type}{' DEFAULT 7' if has_default else ''}"

    def _renamed(self, table: _Table, old: str) -> str:
        """Rename a column, and return the clause of its statement."""
        self._named += 1
        new, type = f"n{self._named}", table.columns[old]
        table.columns = {new if one == old else one: kept for one, kept in table.columns.items()}
        for key, row in table.rows.items():
            table.rows[key] = {new if one == old else one: kept for one, kept in row.items()}
        return self._draw.choice((f"RENAME COLUMN `{old}` TO `{new}`", f"CHANGE `{old}` `{new}` {type}"))


_WIDER = {"int": "bigint", "varchar(20)": "varchar(40)", "decimal(10,2)": "decimal(14,2)"}
_TYPES = ("int", "bigint", "varchar(20)", "decimal(10,2)", "double", "date", "datetime", "datetime(6)", "blob")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


# Events as messages.


def _dts_value(type: str, plain: Any, draw: random.Random) -> Any:
    if plain is None:
        return draw.choice((None, "NULL"))
    head = type.partition("(")[0]
    if head in ("int", "bigint"):
        return value("Integer", precision=8, value=str(plain))
    if head == "varchar":
        charset = draw.choice([one for one in ("utf8mb4", "gbk", "utf16") if _holds(plain, one)])
        return value("Character", charset=charset, value=plain.encode(_CODECS[charset]))
    if head == "decimal":
        return value("Decimal", value=plain, precision=10, scale=2)
    if head == "double":
        return value("Float", value=plain, precision=0, scale=0)
    if head == "blob":
        return value("BinaryObject", type="blob", value=plain)
    time = datetime.fromisoformat(plain)
    return value("DateTime", **instant(*time.timetuple()[:6], time.microsecond))


_CODECS = {"utf8mb4": "utf-8", "gbk": "gbk", "utf16": "utf-16-be"}
_NUMBERS = {"int": 3, "bigint": 8, "varchar": 253, "decimal": 246, "double": 5, "date": 10, "datetime": 12, "blob": 252}


def _holds(text: str, charset: str) -> bool:
    try:
        text.encode(_CODECS[charset])
    except UnicodeEncodeError:
        return False
    return True


def dts(event: Event, draw: random.Random, **more: Any) -> bytes:
    """Return the record of an event."""
    file, offset = event.place
    said: dict[str, Any] = {
        "sourcePosition": f"{offset}@{file}",
        "id": 1_700_000 + event.serial,
        "bornTimestamp": _BEGIN,
    }
    said |= {"sourceTimestamp": _BEGIN + event.number // 3, "tags": {"pk_uk_info": '{"PRIMARY":["id"]}'}}
    if event.sql:
        said |= {"operation": "DDL", "objectName": "d", "afterImages": event.sql, "tags": {}}
        return packed(record(**said | more))
    columns = {one: _NUMBERS[type.partition("(")[0]] for one, type in event.columns.items()}
    images: list[list[Any] | None] = [
        None if row is None else [_dts_value(event.columns[one], row[one], draw) for one in columns]
        for row in (event.before, event.after)
    ]
    said |= {"operation": event.kind, "objectName": f"d.{event.table}"}
    return packed(record(columns, beforeImages=images[0], afterImages=images[1], **said | more))


def _canal_text(type: str, plain: Any) -> str | None:
    if isinstance(plain, bytes):
        return plain.decode("latin-1")
    return None if plain is None else repr(plain) if type == "double" else str(plain)


def _canal_columns(event: Event, row: Row | None, other: Row | None) -> list[Any]:
    columns = event.columns.items() if row is not None else ()
    has_changed = {one: row is not None and other is not None and row[one] != other[one] for one, _ in columns}
    texts = {one: _canal_text(type, (row or {})[one]) for one, type in columns}
    return [
        column(i, one, texts[one], type, isKey=one == "id", updated=has_changed[one])
        for i, (one, type) in enumerate(columns)
    ]


def canal(events: list[Event], draw: random.Random, **more: Any) -> bytes:
    """Return a packet of events; those of rows of one statement are an entry. Marks stand between entries."""
    entries: list[Any] = []
    for _, group in groupby(events, lambda one: (one.number, one.table)):
        first, *others = group
        file, offset = first.place
        header = {"logfileName": f"mysql-bin.{file:06}", "executeTime": (_BEGIN + first.number // 3) * 1000}
        header |= {"schemaName": "d"}
        if draw.random() < 0.2:
            entries.append(entry(offset, made("TransactionBegin", threadId=9), "TRANSACTIONBEGIN", **header))
        change = _canal_statement(first) if first.sql else _canal_rows([first, *others])
        entries.append(entry(offset, change, draw.choice(("ROWDATA", None)), tableName=first.table, **header))
    return packet(*entries, **more)


def _canal_statement(event: Event) -> Any:
    words = {"CREATE": "CREATE", "DROP": "ERASE", "RENAME": "RENAME", "TRUNCATE": "TRUNCATE"}
    word = "CINDEX" if event.sql.startswith("CREATE INDEX") else words.get(event.sql.split(" ", 1)[0], "ALTER")
    return made("RowChange", eventType=word, isDdl=True, sql=event.sql, ddlSchemaName="d")


def _canal_rows(events: list[Event]) -> Any:
    rows = [
        made(
            "RowData",
            beforeColumns=_canal_columns(one, one.before, None),
            afterColumns=_canal_columns(one, one.after, one.before),
        )
        for one in events
    ]
    return made("RowChange", tableId=108, eventType=events[0].kind, rowDatas=rows)


class Message(NamedTuple):
    """A message with the events in it; none in a damaged one."""

    events: list[Event]
    raw: bytes
    is_reject: bool = False


def messages_of(
    events: list[Event], format: str, draw: random.Random, statements: list[int], *, is_alone: bool
) -> Iterator[Message]:
    """Yield the messages of events in one lane, some as JSON or base64, and damaged ones among them."""
    i = 0
    while i < len(events):
        count = 1 if format == DTS else draw.choice((1, 1, 2, 5, 20))
        some = events[i : i + count]
        # A message of some lanes holds no row from before a statement and one from behind it.
        after = next((one for one in statements if one > some[0].number), None)
        some = [one for one in some if after is None or is_alone or one.number < after]
        i += len(some)
        raw = dts(some[0], draw) if format == DTS else canal(some, draw)
        yield Message(some, form(raw, format, draw))
        if draw.random() < 0.06:
            bad = damaged(some[0], format, draw)
            if bad is not None:
                yield Message([], bad, is_reject=True)


def form(raw: bytes, format: str, draw: random.Random) -> bytes:
    """Return a message as it is, as base64 or as its JSON."""
    kind = draw.random()
    text = get_format(format).text_of(raw)
    return raw if kind < 0.6 or isinstance(text, str) else b64encode(raw) if kind < 0.8 else text


def damaged(event: Event, format: str, draw: random.Random) -> bytes | None:
    """Return a message that has to be a reject, of a row that nobody has; None for an event without a row."""
    if event.after is None:
        return None
    one = event._replace(after={**event.after, "id": 10**15}, before=None, kind="INSERT")
    raw = dts(one, draw) if format == DTS else canal([one], draw)
    # Records of older schemas have no time in the end, and those of 48 bytes are no operation.
    cut = raw[: draw.randrange(1, len(raw) - 9)]
    ways = [
        cut[:47] if len(cut) == 48 else cut,
        *(raw + more for more in (b"\x00", b"\xff" * 9, raw)),
        *(b"[" * 100_000, b'{"a":' * 100_000, b"[" * 10_000 + b"]" * 10_000),
        *(b"\xff\xfe", b"no message", b"{}", b"null", b64encode(raw)[:-4]),
    ]
    return draw.choice(ways + (_damaged_dts(event, raw) if format == DTS else _damaged_canal(one, raw, draw)))


def _damaged_dts(event: Event, raw: bytes) -> list[bytes]:
    """Return records with values that are no texts, and with operations and branches that there are not."""
    found = []
    for charset, text in (("no such", b"a"), ("utf8mb4", b"\xff\x80"), ("gbk", b"\xff")):
        image = [value("Integer", precision=8, value="7"), value("Character", charset=charset, value=text)]
        tags = {"pk_uk_info": '{"PRIMARY":["id"]}'}
        found.append(packed(record({"id": 8, "a": 253}, afterImages=image, objectName=f"d.{event.table}", tags=tags)))
    at = raw.index(b"\x0c8.0.28") + 7
    found += [raw[:at] + wrong + raw[at + 1 :] for wrong in (b"\x22", b"\x01", b"\xfe\xff\xff\xff\x0f")]
    return found + [raw[: at + 1] + wrong + raw[at + 2 :] for wrong in (b"\x04", b"\x01")]


def _damaged_canal(event: Event, raw: bytes, draw: random.Random) -> list[bytes]:
    """Return packets that are compressed, and with fields that there are not, of other types or twice."""
    compressed = [canal([event], draw, compression=one) for one in ("ZLIB", "GZIP", "LZF")]
    return compressed + [raw + more for more in (b"\x7a\x00", b"\x0d\x00\x00\x00\x00", b"\x18\x07")]


class Arrived(NamedTuple):
    """Messages in the order of their arrival, with their lanes."""

    lane: tuple[str, int]
    message: Message


def arrived(history: History, format: str, draw: random.Random) -> tuple[list[Arrived], str]:
    """Return the messages of a history as they arrive, through partitions, sent again; and how."""
    # Of a row that moved into another partition, or of a table that nothing declares, only one lane says what came first.
    is_one = history.has_shifts or not all(table.is_declared for table in history.every)
    partitions, repeats = 1 if is_one else draw.choice((1, 2, 2, 3)), draw.choice(REPEATS)
    lanes: dict[tuple[str, int], list[Event]] = {}
    statements = [one.number for one in history.events if one.sql]
    for one in history.events:
        lane = ("d", zlib.crc32(repr(_key(one)).encode()) % partitions)
        lanes.setdefault(("statements", 0) if one.sql and partitions > 1 else lane, []).append(one)
    lanes |= {("load", 0): history.loaded} if history.loaded else {}
    made_of = {
        lane: list(_sent([*messages_of(events, format, draw, statements, is_alone=partitions == 1)], repeats, draw))
        for lane, events in lanes.items()
    }
    found, speed = [], {lane: draw.choice((1, 1, 10, 100)) for lane in lanes}
    ahead = Counter(
        one.number for messages in made_of.values() for message in messages for one in message.events[:1] if one.sql
    )
    done: set[int] = set()
    while any(made_of.values()):
        first = min((one for one in ahead if one not in done), default=None)
        ready = [lane for lane, some in made_of.items() if some and not _is_early(some[0], first)]
        ready = [lane for lane in ready if lane[0] == "load"] or ready if is_one else ready
        (lane,) = draw.choices(ready, [speed[one] for one in ready])
        message = made_of[lane].pop(0)
        done |= {one.number for one in message.events if one.sql}
        found.append(Arrived(lane, message))
    return found, f"{partitions} partitions, {repeats}, {len(history.loaded)} loaded, {len(found)} messages"


def _key(event: Event) -> Any:
    return event.table, (event.after or event.before or {}).get("id")


def _is_early(message: Message, first: int | None) -> bool:
    """Return whether a row would come before a statement that was made before it."""
    rows = [one.number for one in message.events]
    return first is not None and bool(rows) and not any(one.sql for one in message.events) and rows[0] > first


def _sent(messages: list[Message], repeats: str, draw: random.Random) -> Iterator[Message]:
    for i, message in enumerate(messages):
        yield from [message] * (3 if repeats == "three times" else 1)
        if repeats == "goes back" and draw.random() < 0.05:
            yield from messages[draw.randrange(i + 1) : i + 1]


# Runs.


def differences(history: History, job: LocalJob) -> list[str]:
    """Return what differs between the lake's tables and those of a history."""
    state = JobState(job.folder / "state" / "batches")
    number = state.batches()[-1] + 1
    tables = state.resume(number, Tables(zone=UTC)).tables.tables
    names = {each: TableName(*name) for each, *name in state.facts(number)["names"]}
    live = {one.schema.table.table: names[one.number] for one in tables if one.number in names and not one.is_gone}
    wrong = [f"{name}: no lake table" for name in history.tables if name not in live]
    for name, table in history.tables.items():
        if name not in live:
            continue
        own = locate(job.native, live[name]).table(live[name], "")
        missing = {*table.columns} - {*own.schema().names}
        if missing:
            wrong.append(f"{name}: lacks {missing}")
            continue
        held = sorted((tuple(map(_shown, row)) for row in tuples(own.read([*table.columns]))), key=repr)
        wanted = sorted((tuple(_shown(row[one]) for one in table.columns) for row in table.rows.values()), key=repr)
        if held != wanted:
            more, less = [one for one in held if one not in wanted], [one for one in wanted if one not in held]
            wrong.append(f"{name} {table.columns}: has {more[:3]}, must have {less[:3]}, {len(held)} {len(wanted)}")
    return wrong


def _shown(item: Any) -> Any:
    return item if item is None or isinstance(item, bytes) else str(item)


def _faults(history: History, job: LocalJob, came: list[Arrived], waiting: dict[str, str]) -> list[str]:
    """Return what is wrong in the end: rows that wait, rejects that are none, tables that differ."""
    state = JobState(job.folder / "state" / "batches")
    found = state.facts(state.batches()[-1] + 1)["totals"].get("rejected", 0)
    wanted = sum(one.message.is_reject for one in came)
    wrong = [] if found == wanted else [f"{found} rejects, not {wanted}"]
    return wrong + [f"{name} waits: {why}" for name, why in waiting.items()] + differences(history, job)


def through_partitions(folder: Path, kind: str, format: str, seed: int) -> list[str]:
    """Run a history through partitions, in batches that end anywhere, some run again; return what is wrong."""
    draw, history = random.Random(f"lanes {seed}"), History(seed, format)
    came, how = arrived(history, format, draw)
    records = placed([Record(*one.lane, None, one.message.raw) for one in came])
    run = ShopRun(folder, kind, format)
    borders = sorted(draw.sample(range(1, len(records)), min(draw.randrange(5), len(records) - 1)))
    for start, end in pairwise([0, *borders, len(records)]):
        run.batch(records[start:end], is_again=draw.random() < 0.3)
    return [f"{how}: {one}" for one in _faults(history, run.job, came, run.reports[-1].waiting)]


def through_files(folder: Path, kind: str, format: str, seed: int) -> list[str]:
    """Run a history through files in lives that are killed at calls of functions; return what is wrong."""
    draw, history = random.Random(f"files {seed}"), History(seed, format)
    came, how = arrived(history, format, draw)
    lines = [one.message.raw if _is_line(one.message.raw) else b64encode(one.message.raw) for one in came]
    job = LocalJob(folder, lake_section(kind, folder, changelog=True), {"format": format})
    cuts = sorted(draw.sample(range(len(lines)), min(2, len(lines))))
    kills = 0
    for start, end in pairwise([0, *cuts, len(lines)]):
        job.send(*lines[start:end])
        for last in draw.sample(range(1, 9_000), draw.randrange(3)):
            kills += forked(partial(_life, job, last), folder / "log") is None

    def last_life() -> list[str]:
        reports = job.run()
        return _faults(history, job, came, reports[-1].waiting if reports else {})

    said = forked(last_life, folder / "log")
    return [f"{how}, {kills} kills: {one}" for one in said or ["killed"]] if said != [] else []


def _life(job: LocalJob, last: int) -> list[str]:
    """Run a pipeline until the call of a function with a number."""
    counted = Calls(last)
    counted.start()
    try:
        job.run()
    finally:
        sys.setprofile(None)
    return []


def _is_line(raw: bytes) -> bool:
    return raw.startswith(b'{"') or (raw.isascii() and raw.decode("ascii").isprintable())


def forked(function: Callable[[], list[str]], log: Path) -> list[str] | None:
    """Return what a function returns in a process of its own; None if it was killed."""
    pid = os.fork()
    if pid == 0:
        # A killed process takes its group with it.
        os.setpgid(0, 0)
        try:
            said = function()
        except BaseException:  # noqa: BLE001  the other process says it
            said = [traceback.format_exc()]
        log.write_text(json.dumps(said), encoding="utf-8")
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    found: list[str] | None = json.loads(log.read_text(encoding="utf-8")) if status == 0 else None
    return found


def main() -> None:
    """Run as many histories as are asked for, and print what is wrong."""
    format, count, begin = sys.argv[1], int(sys.argv[2]), int((sys.argv[3:] or ["1"])[0])
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(begin, begin + count):
            for way in sys.argv[4:] or ("partitions", "files"):
                own, kind = Path(folder, f"{way}{seed}"), (DELTA, ICEBERG)[seed % 2]
                own.mkdir()
                if way == "files":
                    wrong = through_files(own, kind, format, seed)
                else:
                    # Delta Lake's library does not outlive a fork, so nothing of it runs in this process.
                    wrong = forked(partial(through_partitions, own, kind, format, seed), own / "log") or []
                bad += wrong != []
                for one in wrong:
                    print(f"{format} {kind} {seed} {way}: {one[:1500]}", flush=True)  # noqa: T201
    print(f"{count} histories, {bad} with differences")  # noqa: T201


if __name__ == "__main__":
    main()
