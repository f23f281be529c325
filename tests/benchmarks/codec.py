"""Measures encode and decode against orjson + fastavro, on the same messages in the same run.

    python tests/benchmarks/codec.py [CALLS]

The baseline is what one would write by hand: `orjson.loads` + `fastavro.schemaless_writer`, and
`fastavro.schemaless_reader` + `orjson.dumps`, with the same schema. It is not exact (it rounds
numbers and drops members), so it does less work. Each figure is the median of rounds in which the
two sides take turns, with 300 calls in a round if not told otherwise; the ratio is that of the two medians, above 1 if cdcavro is faster. The first
rows are the samples of the formats' documents and messages of real producers, the others the
changes of one database as messages of every format.

A second table shows how the cost grows: the time for ten times as much, divided by the time for one,
compared with the baseline's parser alone. No message occurs twice there, so that caches do not help small
messages more than large ones.

A third table shows what the engine leaves to the exact way, in percent of the messages in each direction: of all
samples, of the changes of the database, and of these in Kafka records.
"""

from __future__ import annotations

import io
import json
import statistics
import sys
import time
from datetime import UTC
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import orjson

import cdcavro
from cdcavro.avro.types import Record, Type, Union
from cdcavro.engine.machine import COMPILED
from cdcavro.wire.attributes import field_rule
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES = Path(str(resources.files("cdcavro") / "samples"))
ROUNDS = 15
CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 300


def samples(format: str) -> list[bytes]:
    """Return the golden messages, and real ones if there are any."""
    found = [path.read_bytes().strip() for path in sorted((SAMPLES / format).glob("*.json"))]
    if format in ("oms_canal", "canal"):
        found += [line for line in (SAMPLES / "canal" / "shop.jsonl").read_bytes().split(b"\n") if line]
    return found


def _is_convertible(message: bytes, format: str) -> bool:
    try:
        Baseline(format).encode(message)
    except ValueError:
        return False
    return True


class Baseline:
    """orjson + fastavro by hand: members that belong in a map are moved into it, and `extras` stays empty."""

    def __init__(self, format: str) -> None:
        self._schema = fastavro.parse_schema(json.loads(cdcavro.load_schema(format).json))
        self._rests = list(_rests(get_format(format).envelope, ()))

    def encode(self, text: bytes) -> bytes:
        """Return a text as a payload."""
        record = orjson.loads(text)
        record["extras"] = {}
        for place, known, name in self._rests:
            node = record
            for member in place:
                node = node.get(member) if node else None
            if node:
                node[name] = {key: node.pop(key) for key in list(node) if key not in known}
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._schema, record)
        return out.getvalue()

    def decode(self, payload: bytes) -> bytes:
        """Return a payload as a text."""
        return orjson.dumps(fastavro.schemaless_reader(io.BytesIO(payload), self._schema, None))


def _rests(declared: Type, place: tuple[str, ...]) -> Any:
    for branch in declared.branches if isinstance(declared, Union) else (declared,):
        fields = branch.fields if isinstance(branch, Record) else ()
        for field in fields:
            if field_rule(field).members == "rest":
                yield place, {known.name for known in fields}, field.name
            yield from _rests(field.type, (*place, field.name))


def timed(function: Callable[[bytes], Any], inputs: list[bytes], calls: int = 0) -> float:
    """Return the microseconds per call."""
    repeats = max(1, (calls or CALLS) // len(inputs))
    start = time.process_time()
    for _ in range(repeats):
        for raw in inputs:
            function(raw)
    return (time.process_time() - start) / repeats / len(inputs) * 1e6


def paired(ours: Callable[[], float], theirs: Callable[[], float]) -> tuple[float, float]:
    """Let two measurements take turns, and return the median of each."""
    rounds = [(ours(), theirs()) for _ in range(ROUNDS)]
    return statistics.median(own for own, _ in rounds), statistics.median(other for _, other in rounds)


def shop(format: str) -> list[bytes]:
    """Return the changes of a real database as messages of a format."""
    lines = [line for line in (SAMPLES / "canal" / "shop.jsonl").read_bytes().split(b"\n") if line]
    return [text for line in lines for text in cdcavro.transcode(line, "canal", format, zone=UTC).texts]


def in_records(texts: list[bytes]) -> list[bytes]:
    """Return messages as the values of Kafka records."""
    begin = b'{"topic":"shop","partition":0,"offset":%d,"timestamp":1700000000000,"key":null,"value":'
    return [begin % offset + text + b"}" for offset, text in enumerate(texts)]


def left(name: str) -> str:
    """Return the row of a format in the table of what the engine leaves to the exact way."""
    format = get_format(name)
    shares = ""
    for texts in (samples(name), shop(name), in_records(shop(name))):
        payloads = [format.encode(text) for text in texts]
        for convert, given in ((format._engine.encode, texts), (format._engine.decode, payloads)):
            shares += f"{100 * sum(convert(one) is None for one in given) / len(given):>9.1f}"
    return f"{name:32}{shares}"


def row(name: str, texts: list[bytes]) -> str:
    """Measure messages of a format, those that orjson + fastavro can convert at all, and return their row of the table."""
    format, baseline = get_format(name), Baseline(name)
    texts = [text for text in texts if _is_convertible(text, name)]
    payloads = [format.encode(text) for text in texts]
    size = sum(map(len, texts)) // len(texts)
    up, up_base = paired(lambda: timed(format.encode, texts), lambda: timed(baseline.encode, texts))
    down, down_base = paired(lambda: timed(format.decode, payloads), lambda: timed(baseline.decode, payloads))
    return f"{name:32}{size:>7}{up:>11.1f}{up_base / up:>7.1f}{down:>11.1f}{down_base / down:>7.1f}"


def growth(name: str, made: Callable[[int, int], bytes]) -> str:
    """Measure messages of each size in `GROWN`, and return their row of the table."""
    format = get_format("oms_canal")
    rounds: dict[Callable[[bytes], Any], list[list[float]]] = {format.encode: [], format.decode: [], orjson.loads: []}
    for number in range(ROUNDS):
        # The total amount is the same for each size.
        texts = [[made(size, (number + 1) * GROWN[0] + i) for i in range(GROWN[-1] // size)] for size in GROWN]
        payloads = [list(map(format.encode, some)) for some in texts]
        for function, found in rounds.items():
            given = payloads if function == format.decode else texts
            try:
                found.append([timed(function, some, 1) for some in given])
            except orjson.JSONDecodeError:  # more digits than it takes
                continue
    return f"{name:20}{''.join(map(_grown, rounds.values()))}"


def _grown(rounds: list[list[float]]) -> str:
    if not rounds:
        return f"{'-':>13}"
    times = [statistics.median(column) for column in zip(*rounds, strict=True)]
    return f"{times[-1]:>13.0f}" + "".join(f"{after / before:>7.1f}" for before, after in pairwise(times))


def _message(rows: bytes, more: bytes = b"") -> bytes:
    """Return a message with all members that Canal sends; if any were missing, `extras` would have to record it."""
    return (
        b'{"id":1,"database":"shop","table":"t","pkNames":null,"isDdl":false,"type":"INSERT","es":1,"ts":2,'
        b'"sql":"","sqlType":null,"mysqlType":null,"old":null,"data":%s%s}' % (rows, more)
    )


def _columns(count: int, number: int) -> bytes:
    return _message(b"[{%s}]" % b",".join(b'"c%d":%d' % (i, number + i) for i in range(count)))


def _rows(count: int, number: int) -> bytes:
    return _message(b"[%s]" % b",".join([b'{"c":"%d"}' % number] * count))


def _unknown(count: int, number: int) -> bytes:
    return _message(b"null", b"".join(b',"x%d":%d' % (i, number + i) for i in range(count)))


GROWN = (50, 500, 5_000, 50_000)
GROWTH: dict[str, Callable[[int, int], bytes]] = {
    "columns": _columns,
    "rows": _rows,
    "characters": lambda count, number: _message(b'[{"c":"%d%s"}]' % (number, b"x" * count)),
    "digits": lambda count, number: _message(b'[{"c":%d%s}]' % (number, b"7" * count)),
    "digits of a fraction": lambda count, number: _message(b'[{"c":%d.%s}]' % (number, b"7" * count)),
    "escaped characters": lambda count, number: _message(b'[{"c":"%d%s"}]' % (number, b"\\n" * count)),
    "unknown members": _unknown,
}


def main() -> None:
    """Print the tables."""
    print(f"cdcavro, {'compiled' if COMPILED else 'pure Python'}")
    print(f"{'format':32}{'bytes':>7}{'encode µs':>11}{'ratio':>7}{'decode µs':>11}{'ratio':>7}")
    for name in cdcavro.FORMATS:
        print(row(name, samples(name)))
    print("the changes of one database, as messages of")
    for name in cdcavro.FORMATS:
        print(row(name, shop(name)))
    times = "for ten times as many"
    print(f"\n{'50,000 of':20}{'encode µs':>13}{times:>22}{'decode µs':>13}{times:>22}{'orjson.loads':>13}{times:>22}")
    for name, made in GROWTH.items():
        print(growth(name, made))
    print(f"\n{'% left, encode and decode, of':32}{'samples':>18}{'database':>18}{'in records':>18}")
    for name in cdcavro.FORMATS:
        print(left(name))


if __name__ == "__main__":
    main()
