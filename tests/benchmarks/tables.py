"""Measures typed changes and typed payloads against the same by hand with json + fastavro.

    python tests/benchmarks/tables.py

The baseline is what one would write for a single known table: `json.loads`, the values converted column by
column to the types that fastavro expects (Decimal, datetime), and `fastavro.schemaless_writer` with the same
envelope. It checks nothing. Each figure is the median of rounds in which the two sides take turns.

The last rows are Debezium's messages in Kafka Connect's Avro, and records of Alibaba DTS, of 8 columns: to what the engine
types, from that to typed rows, and both, a column at a time. That is JSON of DTS; of Debezium it is payloads of its
format, as in `sync`, and, where the engine leaves a message of a batch, JSON without the schema. Beside them is fastavro,
which only reads the same bytes as dicts.
Packets of Canal become JSON one by one, and lines and typed rows by the column, beside protobuf, which only reads them
as objects.
"""

from __future__ import annotations

import io
import json
import statistics
import sys
import time
from array import array
from copy import deepcopy
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import fastavro

import cdcavro
from cdcavro.change import Arrival, Clock
from cdcavro.engine.payloads import Slices, pack
from cdcavro.formats.connect_avro import ConnectReader
from cdcavro.table import MessageTyper
from cdcavro.table.writing.table_writer import encoded_place
from cdcavro.wire.format import CODECS
from cdcavro.wire.formats import get_format
from support.canal_packets import CLASSES, column, made, packet
from support.canal_packets import rows as rows_entry
from support.connect_envelopes import DECIMAL, MICROSECONDS, envelope, envelope_of, plain, written
from support.dts_records import SCHEMA, instant, packed, record, value
from support.wire import field

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.table.tables import TypedChange

ROUNDS = 15
# The declared type of each column, and the text of its value, in which {i} is the number of the message.
COLUMNS = {
    "id": ("bigint", "10000{i}"),
    "customer": ("int", "{i}"),
    "quantity": ("smallint", "{i}"),
    "amount": ("decimal(12,2)", "{i}.10"),
    "tax": ("decimal(12,4)", "{i}.1234"),
    "price": ("double", "{i}.5"),
    "status": ("varchar(20)", "paid"),
    "remark": ("text", "a remark of some length, as they are"),
    "city": ("varchar(50)", "北京"),
    "street": ("varchar(100)", "Example Street {i}"),
    "born": ("date", "1990-01-{i}"),
    "made": ("datetime", "2024-02-29 12:00:{i}"),
    "sent": ("datetime(3)", "2024-02-29 12:00:{i}.123"),
    "paid": ("timestamp", "2024-02-29 12:00:{i}"),
    "flag": ("tinyint(1)", "1"),
    "nothing": ("varchar(20)", None),
}
TYPES = {name: type for name, (type, _) in COLUMNS.items()}


def messages(count: int, columns: int) -> list[bytes]:
    """Return updates as Canal sends them, with a number of columns."""
    texts = []
    names = [(f"{name}_{k}" if k else name, name) for k in range(columns // len(COLUMNS) + 1) for name in COLUMNS]
    names = names[:columns]
    for i in range(count):
        row = {name: text and text.format(i=10 + i % 18) for name, text in ((n, COLUMNS[kind][1]) for n, kind in names)}
        message = {
            "data": [row],
            "database": "shop",
            "es": 1700000000000 + i,
            "gtid": "",
            "id": i,
            "isDdl": False,
            "mysqlType": {name: TYPES[kind] for name, kind in names},
            "old": [{"quantity": "1"}],
            "pkNames": ["id"],
            "sql": "",
            "sqlType": {name: 12 for name, _ in names},
            "table": "orders",
            "ts": 1700000001000 + i,
            "type": "UPDATE",
        }
        texts.append(json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode())
    return texts


class ByHand:
    """json + fastavro for this table only."""

    def __init__(self, schema: Any, columns: dict[str, str]) -> None:
        self._schema = fastavro.parse_schema(json.loads(schema.json))
        self._change = fastavro.parse_schema(json.loads(cdcavro.load_schema("change").json))
        self._turn = {name: _TURN[type.split("(")[0]] for name, type in columns.items()}

    def change(self, text: bytes) -> dict[str, Any]:
        """Return a text as a dict of typed values."""
        message = json.loads(text)
        (row,), (old,) = message["data"], message["old"]
        after = {name: None if value is None else self._turn[name](value) for name, value in row.items()}
        before = after | {name: None if value is None else self._turn[name](value) for name, value in old.items()}
        return {
            "before": before,
            "after": after,
            "source": {"db": message["database"], "table": message["table"], "ts_ms": message["es"]},
            "op": "u",
            "ts_ms": message["ts"],
        }

    def change_payload(self, text: bytes) -> bytes:
        """Return a text as a payload of `change.avsc`, with values as numbers and texts."""
        message = json.loads(text)
        (row,), (old,) = message["data"], message["old"]
        types = message["mysqlType"]
        after = {name: _NUMBERS.get(types[name], str)(value) if value else value for name, value in row.items()}
        change = {
            "op": message["type"],
            "operation": message["type"],
            "source": {"format": "canal", "database": message["database"], "table": message["table"]},
            "key": message["pkNames"],
            "columns": [{"name": name, "type": type, "code": message["sqlType"][name]} for name, type in types.items()],
            "before": after | old,
            "after": after,
            "changed": list(old),
            "position": [message["es"], message["id"]],
            "row": 0,
            "rows": 1,
            "event_time": message["es"] * 1000,
            "system_time": message["ts"] * 1000,
            "extras": {},
        }
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._change, change)
        return out.getvalue()

    def payload(self, text: bytes) -> bytes:
        """Return a text as a payload of the envelope."""
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._schema, self.change(text))
        return out.getvalue()


_TURN: dict[str, Callable[[str], Any]] = {
    "bigint": int,
    "int": int,
    "smallint": int,
    "tinyint": int,
    "decimal": Decimal,
    "double": float,
    "varchar": str,
    "text": str,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "timestamp": lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC),
}

_NUMBERS: dict[str, Callable[[str], Any]] = {
    "bigint": int,
    "int": int,
    "smallint": int,
    "tinyint(1)": int,
    "double": float,
}


def timed(function: Callable[[bytes], Any], texts: list[bytes]) -> float:
    """Return the microseconds per call."""
    start = time.process_time()
    for text in texts:
        function(text)
    return (time.process_time() - start) / len(texts) * 1e6


def paired(ours: Callable[[], float], theirs: Callable[[], float]) -> tuple[float, float]:
    """Let two measurements take turns, and return the median of each."""
    rounds = [(ours(), theirs()) for _ in range(ROUNDS)]
    return statistics.median(own for own, _ in rounds), statistics.median(other for _, other in rounds)


def column_of(values: list[bytes]) -> Slices:
    """Lay out values as Arrow does."""
    offsets = array("i", [0, *accumulate(map(len, values))])
    return Slices(b"".join(values), offsets.tobytes(), None, 0, len(values))


class Ours:
    """cdcavro, from text to changes and to payloads of their table."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.tables = cdcavro.Tables(zone=UTC)
        self.typer = MessageTyper("canal", self.tables, clock=clock)

    def change(self, text: bytes) -> list[bytes]:
        """Return a text as payloads of `change.avsc`."""
        return [change.to_avro() for change in cdcavro.to_changes(text, "canal", zone=UTC)]

    def payload(self, text: bytes) -> list[bytes]:
        """Return a text as payloads of the envelope, by the engine where it knows what is like it."""
        return [typed.payload for typed in self.typer.add(text)]

    def take(self, texts: list[bytes], *, is_placed: bool = False) -> float:
        """Return the microseconds per message of a column of texts, which becomes columns of keys and payloads.

        Under a clock, of order values, too; it begins anew, and the messages that are placed come one behind another.
        """
        column, places = column_of(texts), None
        if is_placed:
            arrivals = (Arrival(topic="shop.orders", partition=3, offset=10**9 + i) for i in range(len(texts)))
            places = column_of([encoded_place(one) for one in arrivals])
        if self.typer.clock is not None:
            self.typer.clock = Clock()
        start = time.process_time()
        taken, _ = self.typer.take_column(column, places, 0, 1 << 30)
        self.typer.pop_rows()
        if taken != len(texts):
            raise SystemExit("nothing is compiled, so columns go message by message")
        return (time.process_time() - start) / len(texts) * 1e6

    def exact_payload(self, text: bytes) -> list[bytes]:
        """Return a text as payloads of the envelope, by way of its changes."""
        changes = cdcavro.to_changes(text, "canal", zone=UTC, members=False)
        return [typed.payload for change in changes for typed in self.tables.add(change)]


def rows(columns: int) -> list[str]:
    """Measure messages with a number of columns, and return their rows of the table."""
    texts, ours, ordered = messages(100, columns), Ours(), Ours(Clock())
    ours.payload(texts[0])
    ordered.typer.add(texts[0], Arrival(offset=0))
    schema = ours.tables.tables[0].schema
    hand = ByHand(schema.envelope, {column.name: column.type or "" for column in schema.columns})
    size = sum(map(len, texts)) // len(texts)
    lines = []
    for step, mine, theirs in (
        ("text to changes", partial(timed, ours.change, texts), hand.change_payload),
        ("text to payloads", partial(timed, ours.payload, texts), hand.payload),
        ("in a column", partial(ours.take, texts * 50), hand.payload),
        ("with places", partial(ours.take, texts * 50, is_placed=True), hand.payload),
        ("with their order", partial(ordered.take, texts * 50, is_placed=True), hand.payload),
        ("by way of changes", partial(timed, ours.exact_payload, texts), hand.payload),
    ):
        own, other = paired(mine, partial(timed, theirs, texts))
        lines.append(f"{columns:>7}{size:>7}  {step:21}{own:>8.1f}{other:>9.1f}{other / own:>7.2f}")
    return lines


class Binary:
    """Messages that are bytes, from these to JSON and on to payloads of their table, a column at a time."""

    def __init__(self, schema: Any, raw: list[bytes], format: str, text: Any, batch: Any, first: bytes = b"") -> None:
        self.raw, self._schema, self._text, self._batch = raw, schema, text, batch
        self._column = column_of(raw)
        self._texts = self._read()
        self._typer = MessageTyper(format, cdcavro.Tables(zone=UTC))
        for message in ([first] if first else []) + [text for i in range(6) if (text := self._texts.get(i))]:
            self._typer.add(message)

    def _read(self) -> Slices:
        made = pack(self._column, self._text, batch=self._batch)
        return Slices(made.data, made.offsets, None, 0, len(self.raw))

    def by_fastavro(self, raw: bytes) -> Any:
        """Return a message as a dict."""
        return fastavro.schemaless_reader(io.BytesIO(raw), self._schema, None)

    def take(self, *, reads: bool = True, types: bool = True) -> float:
        """Return the microseconds per message of a column that is read, or that is typed, or both."""
        start = time.process_time()
        texts = self._read() if reads else self._texts
        if types:
            taken, _ = self._typer.take_column(texts, None, 0, 1 << 30)
            self._typer.pop_rows()
            if taken != texts.count:
                raise SystemExit("nothing is compiled, so columns go message by message")
        return (time.process_time() - start) / texts.count * 1e6


class Envelopes(Binary):
    """Envelopes in Kafka Connect's Avro, which become payloads of their format, or brief texts."""

    def __init__(self, schema: Any, raw: list[bytes], reader: ConnectReader, *, is_read: bool) -> None:
        super().__init__(schema, raw, "debezium", reader.text, reader.column)
        self._engine = reader.envelope_engine(get_format("debezium"), None)
        self._reader, self._is_read = reader, is_read
        self._texts = self._opened()

    def _opened(self) -> Slices:
        column, count = self._column, len(self.raw)
        if not self._is_read:
            made = pack(column, self._reader.brief_text, batch=self._reader.brief_column)
            return Slices(made.data, made.offsets, None, 0, count)
        data, ends, done = self._engine.read_column(column, None, b"", 1 << 30)
        if done != count:
            raise SystemExit("nothing is compiled, so columns go message by message")
        return Slices(data, bytes(4) + ends, None, 0, count)

    def take(self, *, reads: bool = True, types: bool = True) -> float:
        """Return the microseconds per message of a column that is read, or that is typed, or both."""
        start = time.process_time()
        messages = self._opened() if reads else self._texts
        if types:
            head, is_read = self._reader.head, self._is_read
            taken, _ = self._typer.take_column(messages, None, 0, 1 << 30, head, is_read=is_read)
            self._typer.pop_rows()
            if taken != messages.count:
                raise SystemExit("nothing is compiled, so columns go message by message")
        return (time.process_time() - start) / messages.count * 1e6


def connect(count: int, *, is_read: bool = True) -> Binary:
    """Return messages of Debezium as Kafka Connect's Avro has them."""
    declared = envelope_of(
        field("id", "long"),
        *[
            {"name": name, "type": ["null", type], "default": None}
            for name, type in (("n", "int"), ("name", "string"), ("price", DECIMAL), ("at", MICROSECONDS))
        ],
        *[{"name": name, "type": ["null", type]} for name, type in (("nothing", "int"), ("part", "double"))],
        field("code", "string"),
    )
    declared = deepcopy(declared)
    _complete(declared)
    reader = ConnectReader(cdcavro.parse_schema(json.dumps(declared)))
    raw = [
        written(declared, envelope("u" if i % 3 else "c", _row(i), _row(i - 1) if i % 3 else None, pos=i))
        for i in range(count)
    ]
    return Envelopes(fastavro.parse_schema(plain(declared)), raw, reader, is_read=is_read)


def _complete(declared: dict[str, Any]) -> None:
    """Give an envelope the other members that those of Debezium's connector of MySQL have, null in most rows."""
    (source,) = (one["type"] for one in declared["fields"] if one["name"] == "source")
    for one, names in ((source, ("ts_us", "ts_ns", "thread")), (declared, ("ts_us", "ts_ns"))):
        one["fields"] += [{"name": name, "type": ["null", "long"], "default": None} for name in names]
    texts = ("snapshot", "sequence", "gtid", "query")
    source["fields"] += [{"name": name, "type": ["null", "string"], "default": None} for name in texts]
    block = {"type": "record", "name": "event.block", "fields": [field("id", "string"), field("total_order", "long")]}
    declared["fields"] += [{"name": "transaction", "type": ["null", block], "default": None}]


def _row(i: int) -> dict[str, Any]:
    price, at = (i * 7).to_bytes(3, "big"), 1_700_000_000_000_000 + i
    facts = {"id": i, "n": i, "name": f"text {i}", "price": price, "at": at}
    return {**facts, "nothing": None, "part": i + 0.5, "code": "0123456789"}


DTS_COLUMNS = {"id": 8, "n": 3, "name": 253, "price": 246, "made": 12, "at": 7, "part": 5, "nothing": 253}


def dts(count: int) -> Binary:
    """Return records of Alibaba DTS, of a table that a statement made."""
    made = (
        "id BIGINT PRIMARY KEY, n INT, name VARCHAR(20), price DECIMAL(10,2), made DATETIME, at TIMESTAMP, part DOUBLE"
    )
    statement = packed(record(operation="DDL", objectName="shop", afterImages=f"CREATE TABLE t ({made}, nothing CHAR)"))
    facts = {"objectName": "shop.t", "tags": {"pk_uk_info": '{"PRIMARY":["id"]}', "thread_id": "163931"}}
    raw = []
    for i in range(count):
        sides = {"beforeImages": _values(i, i - 1) if i % 3 else None, "afterImages": _values(i, i)}
        place = {"operation": "UPDATE" if i % 3 else "INSERT", "id": i, "sourcePosition": f"{i}@78"}
        raw.append(packed(record(DTS_COLUMNS, **facts, **place, **sides)))
    format = get_format("dts_avro")
    return Binary(SCHEMA, raw, format.name, format.text_of, CODECS[format.name].column, statement)


def _values(key: int, i: int) -> list[Any]:
    """Return the values of a row as DTS sends them."""
    return [
        value("Integer", precision=8, value=str(key)),
        value("Integer", precision=4, value=str(i)),
        value("Character", charset="utf8mb4", value=f"text {i}".encode()),
        value("Decimal", value=f"{i}.20", precision=10, scale=2),
        value("DateTime", **instant(2023, 1, 2, 3, 4, i % 60, 0)),
        value("Timestamp", timestamp=1_700_000_000 + i, millis=0),
        value("Float", value=i + 0.5, precision=0, scale=0),
        None,
    ]


def binary_rows(name: str, ours: Binary) -> list[str]:
    """Measure messages that are bytes, as many as a task opens at once, and return their rows of the table."""
    size = sum(map(len, ours.raw)) // len(ours.raw)
    lines = []
    for step, parts in (
        (f"{name} to messages", {"types": False}),
        ("messages to payloads", {"reads": False}),
        (f"{name} to payloads", {}),
    ):
        own, other = paired(partial(ours.take, **parts), partial(timed, ours.by_fastavro, ours.raw))
        lines.append(f"{8:>7}{size:>7}  {step:21}{own:>8.1f}{other:>9.1f}{other / own:>7.2f}")
    return lines


def canal_rows(count: int) -> list[str]:
    """Measure packets of Canal with a row each, and return their rows of the table."""
    packets = [packet(_entry(i)) for i in range(count)]
    name = "canal_protobuf"
    typer, exact = (MessageTyper(name, cdcavro.Tables(zone=UTC)) for _ in range(2))
    for one in packets[:6]:
        typer.add(one)
    size = sum(map(len, packets)) // count
    lines = []
    for step, mine in (
        ("packets to JSON", partial(timed, get_format(name).text_of, packets)),
        ("packets to lines", partial(_packet_lines, packets)),
        ("packets to payloads", partial(_packet_rows, typer, packets)),
        ("by way of changes", partial(timed, partial(_exact_rows, exact), packets[:100])),
    ):
        own, other = paired(mine, partial(timed, _by_protobuf, packets))
        lines.append(f"{8:>7}{size:>7}  {step:21}{own:>8.1f}{other:>9.1f}{other / own:>7.2f}")
    return lines


def _packet_lines(packets: list[bytes]) -> float:
    """Return the microseconds per packet of a column that becomes lines of rows."""
    column = column_of(packets)
    start = time.process_time()
    CODECS["canal_protobuf"].column(column, 0, 0, 1 << 30)
    return (time.process_time() - start) / len(packets) * 1e6


def _packet_rows(typer: MessageTyper, packets: list[bytes]) -> float:
    """Return the microseconds per packet of a column that becomes columns of keys and payloads."""
    column = column_of(packets)
    start = time.process_time()
    taken, _ = typer.take_column(column, None, 0, 1 << 30)
    typer.pop_rows()
    if taken != len(packets):
        raise SystemExit("nothing is compiled, so columns go message by message")
    return (time.process_time() - start) / len(packets) * 1e6


def _exact_rows(typer: MessageTyper, raw: bytes) -> list[TypedChange]:
    """Return the rows of a packet by way of its changes."""
    return [typed for change in typer.changes(raw) for typed in typer._tables.add(change)]


def _entry(i: int) -> Any:
    """Return an update of one row, or an insert."""
    sides = {"afterColumns": _columns(i, i), **({"beforeColumns": _columns(i, i - 1)} if i % 3 else {})}
    return rows_entry("UPDATE" if i % 3 else "INSERT", made("RowData", **sides), offset=4567 + i)


def _columns(key: int, i: int) -> list[Any]:
    """Return the first columns of `COLUMNS` with their values, the first of which is the key."""
    found = list(COLUMNS.items())[:8]
    return [
        column(k, name, text and text.format(i=10 + (i if k else key) % 18), type, isKey=k == 0, updated=k > 0)
        for k, (name, (type, text)) in enumerate(found)
    ]


def _by_protobuf(raw: bytes) -> Any:
    """Return what a packet holds as objects of protobuf's own."""
    body = CLASSES["Messages"].FromString(CLASSES["Packet"].FromString(raw).body)
    entries = [CLASSES["Entry"].FromString(one) for one in body.messages]
    return [CLASSES["RowChange"].FromString(one.storeValue) for one in entries]


def main() -> None:
    """Print the table."""
    print(f"{'columns':>7}{'bytes':>7}  {'step':21}{'µs':>8}{'by hand':>9}{'ratio':>7}")
    for columns in (8, 16, 64):
        print("\n".join(rows(columns)))
    for name, kind in (("Avro", connect), ("brief", partial(connect, is_read=False)), ("DTS", dts)):
        print("\n".join(binary_rows(name, kind(1000))))
    print("\n".join(canal_rows(1000)))


if __name__ == "__main__":
    main()
