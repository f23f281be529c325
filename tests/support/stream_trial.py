"""Streams that never repeat themselves, and the memory that following them takes.

    python tests/support/stream_trial.py 1000000 [KIND ...]

adds as many messages of each kind to a `Tables`, or to what else follows a stream (`WAYS`), each kind in a process of its
own, and prints how many were taken and refused, by what sentence, the processor time, and by how much the process grew: at
a quarter and a half of the stream, at its end, and at most. What is refused is a reject, and the stream goes on.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import re
import resource
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from cdcavro import decode, encode, registry, sniff, to_changes
from cdcavro.errors import CdcAvroError
from cdcavro.exact.caching import IdentityCache, WeightedCache
from cdcavro.exact.jsontext import parse, same
from cdcavro.table import history, table_schema
from cdcavro.table import tables as tables_module
from cdcavro.table.evolution import evolve as evolution
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.transcoding.transcoder import Transcoder

if TYPE_CHECKING:
    from collections.abc import Callable

KIBI: Final = 1024
_DIGITS: Final = re.compile("[0-9a-f-]*[0-9][0-9a-f-]*")


def row(number: int, table: str, names: list[str], type: str = "int", **facts: Any) -> bytes:
    """Return an INSERT of Canal's, whose columns have these names."""
    return _message(
        number,
        table,
        type="INSERT",
        isDdl=False,
        pkNames=names[:1],
        mysqlType=dict.fromkeys(names, type),
        data=[dict.fromkeys(names, "1")],
        **facts,
    )


def statement(number: int, table: str, sql: str, type: str = "ALTER") -> bytes:
    """Return a statement of Canal's."""
    return _message(number, table, type=type, isDdl=True, sql=sql)


def _message(number: int, table: str, **facts: Any) -> bytes:
    # Canal's messages are dumped in this order; `es` says which came first.
    usual = {"database": "d", "table": table, "es": 1_600_000_000_000 + number, "ts": 1_600_000_000_000 + number}
    return json.dumps(usual | {"id": number, "data": None, "old": None} | facts).encode()


# What the message with a number is.
KINDS: Final[dict[str, Callable[[int], bytes]]] = {
    "tables": lambda i: row(i, f"t{i}", ["id", "a", "b"]),
    "wide tables": lambda i: row(i, f"t{i}", [f"c{k}" for k in range(60)]),
    "unsigned columns": lambda i: row(i, f"t{i}", [f"{i}_{k}" for k in range(20)], "bigint unsigned"),
    "columns": lambda i: row(i, f"t{i % 100}", ["id", f"c{i}"]),
    "types": lambda i: row(i, f"t{i % 100}", ["id", "a"], f"varchar({i})"),
    "misfits": lambda i: row(i, f"t{i}", ["id", "a", "b"], "date"),
    "creates": lambda i: statement(i, f"t{i}", f"CREATE TABLE t{i} (id INT PRIMARY KEY, a INT, b INT)", "CREATE"),
    "statements": lambda i: statement(
        i, f"t{i // 30}", f"ALTER TABLE t{i // 30} ADD c{i} INT" if i % 30 else f"CREATE TABLE t{i // 30} (id INT)"
    ),
    "adds and drops": lambda i: (
        statement(
            i,
            f"t{i % 100}",
            f"ALTER TABLE t{i % 100} {'DROP' if i // 100 % 2 else 'ADD'} a{' INT' * (1 - i // 100 % 2)}",
        )
        if i >= 100
        else statement(i, f"t{i}", f"CREATE TABLE t{i} (id INT)", "CREATE")
    ),
    "renames": lambda i: statement(i, f"t{i}", f"RENAME TABLE t{i} TO t{i + 1}" if i else "CREATE TABLE t1 (id INT)"),
    "creates and drops": lambda i: statement(i, "t", "DROP TABLE t" if i % 2 else "CREATE TABLE t (id INT)"),
    "unknown tables": lambda i: statement(i, f"t{i}", f"DROP TABLE t{i}", "ERASE"),
    "long statements": lambda i: statement(i, "t", f"DROP TABLE t{i} /* {'x' * 20_000} */", "ERASE"),
}


def _prefixes() -> Callable[[int], object]:
    """Return what opens framed payloads, which claim ever-new ids, fingerprints and GUIDs."""
    schemas = registry.connect(f"file:{tempfile.mkdtemp()}")
    schemas.publish('"int"', "s")
    of: list[Callable[[int], Any]] = [
        lambda i: i + 2,
        lambda i: registry.Fingerprint(f"{i:016x}"),
        lambda i: registry.Guid(UUID(int=i)),
    ]
    return lambda i: schemas.open(registry.frame(b"\x0e", of[i % 3](i)))


def _halves() -> Callable[[int], object]:
    """Return what joins the halves of updates, of which the second ones never come."""
    transcoder = Transcoder("datahub_blob", "canal")
    text = (
        '{{"schema":{{}},"payload":{{"op":"UPDATE_BEFOR","before":{{"dataColumn":{{"id":{0}}}}},"sequenceId":"{0}"}}}}'
    )

    def add(i: int) -> None:
        for outcome in transcoder.add(text.format(i)):
            outcome.result()

    return add


def _learned() -> Callable[[int], object]:
    """Return what learns the columns of Debezium's ever-new tables."""
    transcoder = Transcoder("debezium", "canal")
    text = (
        '{{"source":{{"connector":"mysql","db":"s"}},"databaseName":"s","ddl":"CREATE TABLE t{0}","tableChanges":[{{"type":'
        '"CREATE","id":"\\"s\\".\\"t{0}\\"","table":{{"columns":[{{"name":"p{0}","typeExpression":"INT"}}]}}}}]}}'
    )
    return lambda i: [one.result() for one in transcoder.add(text.format(i))]


def _pointers() -> Callable[[int], object]:
    """Return what encodes, decodes and sniffs messages with ever-new members that no schema names."""

    def add(i: int) -> None:
        message = row(i, "t", ["id"], **{f"unknown {i}": {f"a{i}": [i]}})
        assert same(parse(decode(encode(message, "canal"), "canal")), parse(message))
        sniff(message)

    return add


# What else follows a stream: each makes what takes the message with a number.
WAYS: Final[dict[str, Callable[[], Callable[[int], object]]]] = {
    "prefixes": _prefixes,
    "halves": _halves,
    "learned columns": _learned,
    "pointers": _pointers,
}


def added(tables: Tables) -> list[bytes]:
    """Add a message with a column of its own to tables, and return its payloads."""
    changes = to_changes(KINDS["columns"](200), "canal")
    return [one.payload for change in changes for one in tables.add(change)]


def followed(kind: str, count: int, tables: Tables | None = None) -> tuple[Tables, Counter[str], list[int]]:
    """Return tables after a stream, how often which sentence refused a message, and the growth at a quarter, half and the end."""
    tables = Tables() if tables is None else tables
    typer, made = MessageTyper("canal", tables), KINDS.get(kind)
    take = WAYS[kind]() if made is None else lambda i: typer.add(made(i))
    refused: Counter[str] = Counter()
    grown = []
    began = _resident()
    for i in range(count):
        try:
            take(i)
        except CdcAvroError as error:
            refused[_DIGITS.sub("N", str(error).partition(": ")[2])] += 1
        if i + 1 in (count // 4, count // 2, count):
            grown.append(_resident() - began)
    return tables, refused, grown


def measured(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function of a module returns in a process of its own, whose caches nobody has filled."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def growth(kind: str) -> tuple[int, int]:
    """Return how many bytes 150 further messages of a stream take, and what they are charged with.

    For a process of its own: what is kept of all streams is made small, and stays so.
    """
    table_schema._MADE = WeightedCache(10_000, share=1)
    evolution._REMEMBERED = tables_module._WRITERS = 20
    # One for all streams of a process, which is full once and for all.
    history._LACK_ARGUMENTS = IdentityCache(history._lack_arguments, 1)
    followed(kind, 20)
    tracemalloc.start()
    made, refused, _ = followed(kind, 100)
    gc.collect()
    first, before = tracemalloc.get_traced_memory()[0], made._room.left
    typer = MessageTyper("canal", made)
    for i in range(100, 250):
        typer.add(KINDS[kind](i))
    gc.collect()
    if refused:
        raise ValueError(f"refused: {refused}")
    return tracemalloc.get_traced_memory()[0] - first, before - made._room.left


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize() // KIBI


def _run(kind: str, count: int) -> None:
    began = _resident()
    _, refused, grown = followed(kind, count)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - began
    sentence, times = next(iter(refused.most_common(1)), ("", 0))
    told = f", {times:,} times {sentence}" if times else ""
    sizes = " / ".join(f"{size / KIBI:,.0f}" for size in (*grown, most))
    counts = f"{count - refused.total():,} taken, {refused.total():,} refused"
    print(f"{kind}: {counts}, {sizes} MiB, {time.process_time():.0f} s{told}", flush=True)  # noqa: T201


if __name__ == "__main__":
    for one in sys.argv[2:] or (*KINDS, *WAYS):
        process = multiprocessing.get_context("spawn").Process(target=_run, args=(one, int(sys.argv[1])))
        process.start()
        process.join()
