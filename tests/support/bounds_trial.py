"""Inputs of 1 MB that are made to cost much, and what they cost: the worst time and memory of each kind of input.

    python tests/support/bounds_trial.py [SIZE [CASES [FORMAT ...] [others]]]

Into places of the sample messages of a format it puts texts that grow to a size (1,000,000 by default; so many cases of
each format by lot, all of them by default, which takes hours): long numbers,
escapes, arrays of empty items, deep nesting, many members, members that are doubled, rows. What becomes of each (payload,
changes, other formats, typed rows) is done in a process of its own, of which the processor time and the growth are taken.
Payloads of the samples are cut, and counts and lengths that lie are put into them, framed ones too. Then the same for schemas,
statements and containers, whose blocks lie. What takes longer than a second or more than 256 MB is
printed as it is found, at the end a table of the worst of each kind.
"""

from __future__ import annotations

import gc
import io
import json
import os
import pickle
import resource
import sys
import tempfile
import time
import traceback
import zlib
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from cdcavro import decode, encode, from_changes, parse_schema, registry, sniff, to_changes, transcode, verdict
from cdcavro.avro.container import ContainerReader
from cdcavro.change.model import Column, Source
from cdcavro.errors import CdcAvroError
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import create_table, evolve
from cdcavro.table.tables import Tables
from cdcavro.wire.formats import FORMATS, get_format
from support.messages import goldens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_SECONDS: Final = 1.0
MOST_KIB: Final = 256 * 1024
# Stands where a text is put into a message.
_HERE: Final = "\x00here\x00"


class Cost(NamedTuple):
    """What something cost: seconds of processor time, KiB by which the process grew, and the error, if there was one."""

    seconds: float
    grown: int
    error: str
    case: str = ""


def repeated(item: str, size: int, joint: str = ",") -> str:
    """Return an item as often as it has room."""
    return joint.join([item] * max(1, size // (len(item) + len(joint))))


def numbered(before: str, after: str, size: int) -> str:
    """Return items with a number in each, as many as have room."""
    count = max(1, size // (len(before) + len(after) + 7))
    return ",".join([f"{before}{i}{after}" for i in range(count)])


def _array(item: str) -> Callable[[int], str]:
    return lambda size: f"[{repeated(item, size)}]"


def _members(before: str, after: str) -> Callable[[int], str]:
    return lambda size: "{" + numbered(before, after, size) + "}"


# JSON texts of about a size.
FILLERS: Final[dict[str, Callable[[int], str]]] = {
    "a long number": lambda size: "1" * size,
    "a long fraction": lambda size: f"0.{'1' * size}e-9",
    "a string of escapes": lambda size: '"' + repeated("\\u00e9", size, "") + '"',
    "a string of line breaks": lambda size: '"' + repeated("\\n", size, "") + '"',
    "a long string": lambda size: '"' + "x" * size + '"',
    "numbers": _array("1"),
    "long numbers": _array("1" * 40 + ".50"),
    "doubles": _array("1.5"),
    "empty arrays": _array("[]"),
    "empty objects": _array("{}"),
    "arrays of one": _array("[1]"),
    "rows": _array('{"a":1}'),
    "rows of strings": _array('{"a":"1","b":null}'),
    "columns": _array('{"name":"c","type":"int"}'),
    "nulls": _array("null"),
    "deep arrays": _array("[" * 100 + "]" * 100),
    "deep objects": _array('{"a":' * 100 + "1" + "}" * 100),
    "many members": _members('"', '":1'),
    "many strings": _members('"', '":"1"'),
    "many numbers": _members('"', '":1.50'),
    "many objects": _members('"', '":{}'),
    "many escaped names": _members('"\\u0041~/', '":{}'),
    "doubled members": lambda size: "{" + repeated('"a":1', size) + "}",
    "a long name": lambda size: '{"' + "x" * (size // 2) + '":{' + numbered('"', '":1', size // 2) + "}}",
}


def messages(format: str) -> Iterator[tuple[str, Callable[[int], bytes]]]:
    """Yield what is put where, and what makes the message of a size, for all places of the sample messages."""
    seen: set[str] = set()
    for golden in goldens(format):
        value = json.loads(golden)
        for place, text in _places(value, ""):
            if place in seen:
                continue
            seen.add(place)
            for name, filler in FILLERS.items():
                yield f"{name} at {place}", partial(_filled, text, filler)


def _filled(text: str, filler: Callable[[int], str], size: int) -> bytes:
    return text.replace(json.dumps(_HERE), filler(size)).encode()


def _places(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Yield each place in a message, an unknown member of each object included, and the text with a mark there."""
    for steps in _paths(value, ()):
        whole = pickle.loads(pickle.dumps(value))
        at = whole
        for step in steps[:-1]:
            at = at[step]
        at[steps[-1]] = _HERE
        yield place + "/" + "/".join(map(str, steps)), json.dumps(whole)


def _paths(value: Any, steps: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        yield (*steps, "unknown")
        # Of the columns of a row, one is like another.
        for name in [*value][:12] if len(steps) < 2 else [*value][:2]:
            yield (*steps, name)
            yield from _paths(value[name], (*steps, name))
    elif isinstance(value, list) and value:
        yield (*steps, 0)
        yield from _paths(value[0], (*steps, 0))


def cost(work: Callable[[], object]) -> Cost:
    """Return what a work costs, done in a process of its own; an error that is none of the project's is raised."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        code = 1
        try:
            # What the tests before it left is not looked through, and so not copied, while the work is measured.
            gc.freeze()
            began, resident = time.process_time(), _resident()
            try:
                work()
                error = ""
            except CdcAvroError as raised:
                error = str(raised)[:120]
            seconds = time.process_time() - began
            told = pickle.dumps((seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident, error))
            os.write(writer, told)
            code = 0
        except BaseException:  # noqa: BLE001  shown, and the process ends
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise RuntimeError("the process died")
    return Cost(*pickle.loads(told))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize() // 1024


def works(format: str, message: bytes) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is done with a message, each by its name."""
    yield "sniff", partial(sniff, message)
    yield "encode", partial(encode, message, format)
    try:
        payload = encode(message, format)
    except CdcAvroError:
        return
    yield "decode", partial(decode, payload, format)
    yield "to_changes", partial(to_changes, message, format)
    try:
        changes = to_changes(message, format)
    except CdcAvroError:
        return
    yield "from_changes", partial(from_changes, changes, format)
    yield "Tables.add", partial(_added, changes)
    yield "Tables.add", lambda: [Tables().add(change) for change in changes[:1]] and _added(changes)
    for other in ("canal", "debezium", "datahub_tuple", "oms_shareplex"):
        yield f"transcode to {other}", partial(transcode, message, format, other)


def _added(changes: list[Any]) -> None:
    tables = Tables()
    for change in changes:
        try:
            tables.add(change)
        except CdcAvroError:
            continue


def long(number: int) -> bytes:
    """Return an integer as Avro writes it."""
    number = number << 1 if number >= 0 else ~(number << 1)
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


# What stands in a payload where something else was, with as much behind it as there is room.
LIES: Final[dict[str, Callable[[int], bytes]]] = {
    "nothing more": lambda _: b"",
    "zeros": lambda size: b"\0" * size,
    "small numbers": lambda size: b"\2" * size,
    "negative numbers": lambda size: b"\1" * size,
    "numbers without end": lambda size: b"\xff" * size,
    "a length of 2^40": lambda size: long(1 << 40) + b"x" * size,
    "the least number": lambda size: long(-(1 << 63)) + b"x" * size,
    "a true length": lambda size: long(size) + b"x" * size,
    "a count that is true of empty items": lambda size: long(size) + b"\0" * size,
    "a negative count with its size": lambda size: long(-size) + long(size) + b"\0" * size,
    "a negative count with a size of 2^62": lambda size: long(-3) + long(1 << 62) + b"\0" * size,
    "a negative count without a size": lambda size: long(-size) + long(0) + b"\0" * size,
    "many blocks": lambda size: b"\2\2a\2" * (size // 4) + b"\0",
    "many blocks with sizes": lambda size: b"\1\6\2a\2" * (size // 5) + b"\0",
}


def payloads(format: str) -> Iterator[tuple[str, Callable[[int], bytes]]]:
    """Yield what stands from which byte of a sample's payload on, and what makes that payload, of a size at most."""
    for number, golden in enumerate(goldens(format)):
        payload = encode(golden, format)
        for at in range(0, len(payload), 1 + len(payload) // 200):
            for name, lie in LIES.items():
                yield f"{name} at byte {at} of {number}", partial(_lying, payload, at, lie)


def _lying(payload: bytes, at: int, lie: Callable[[int], bytes], size: int) -> bytes:
    rest = payload[at + 1 :]
    return payload[:at] + lie(max(0, size - len(payload) - 20)) + rest


def opened(format: str) -> Callable[[bytes], object]:
    """Return what opens a payload of a format that is framed."""
    schemas = registry.connect(f"file:{tempfile.mkdtemp()}")
    made = schemas.publish(get_format(format).schema, format)
    return lambda payload: schemas.open(registry.frame(payload, made.id))


def schemas(size: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is done with schemas of a size."""

    def record(fields: str) -> str:
        return '{"type":"record","name":"r","fields":[' + fields + "]}"

    inner = ',"type":{"type":"record","name":"q'
    records = [f'{{"name":"f{i}"{inner}{i}","fields":[]}}}}' for i in range(size // 65)]
    texts = {
        "many fields": record(numbered('{"name":"f', '","type":"int"}', size)),
        "many optional fields": record(numbered('{"name":"f', '","type":["null","int"],"default":null}', size)),
        "many aliases": '{"type":"record","name":"r","fields":[],"aliases":[' + numbered('"a', '"', size) + "]}",
        "many symbols": '{"type":"enum","name":"e","symbols":[' + numbered('"a', '"', size) + "]}",
        "a long default": record('{"name":"f","type":"string","default":"' + "x" * size + '"}'),
        "many defaults": record(
            '{"name":"f","type":{"type":"array","items":"int"},"default":[' + repeated("1", size) + "]}"
        ),
        "many records": record(",".join(records)),
        "deep": '{"type":"array","items":' * (size // 26) + '"int"' + "}" * (size // 26),
        "a long doc": record('{"name":"f","type":"int","doc":"' + "\\u00e9" * (size // 6) + '"}'),
        "no schema": "[" * size,
    }
    for name, text in texts.items():
        yield f"schema: {name}", partial(parse_schema, text)
        yield (
            f"verdict: {name}",
            lambda text=text: verdict(parse_schema(text), parse_schema(text.replace("int", "long"))),
        )


def statements(size: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is done with statements of a size."""
    table = create_table(TableName(None, None, "t"), [Column(name=f"c{i}", type="int") for i in range(2_000)])
    texts = {
        "many columns": f"CREATE TABLE t ({numbered('a', ' INT', size)})",
        "many actions": f"ALTER TABLE t {numbered('ADD a', ' INT', size)}",
        "8,000 actions": f"ALTER TABLE t {numbered('ADD a', ' INT AFTER c1', 150_000)}",
        "2,000 columns more": f"ALTER TABLE t {numbered('ADD a', ' INT AFTER c1', 48_000)}",
        "many statements": repeated("ALTER TABLE t ADD a INT", size, ";"),
        "many renames": repeated("ALTER TABLE t RENAME TO u", size, ";"),
        "an enum": f"ALTER TABLE t ADD a ENUM({numbered(chr(39), chr(39), size)})",
        "a comment": f"ALTER TABLE t ADD a INT COMMENT '{'x' * size}'",
        "a default": f"ALTER TABLE t ADD a TEXT DEFAULT '{'x' * size}'",
        "brackets": "ALTER TABLE t ADD a INT DEFAULT " + "(" * size,
        "a routine": "CREATE PROCEDURE p() BEGIN " + "BEGIN END; " * (size // 11) + "END",
        "quotes": "`" * size,
        "comments": "/* */" * (size // 5),
    }
    for name, text in texts.items():
        yield f"statement: {name}", partial(evolve, table, text[: 1 << 20], source=Source(db_type="mysql"))


def containers(size: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is done with container files of a size."""

    def text(value: bytes) -> bytes:
        return long(len(value)) + value

    def head(codec: bytes, schema: bytes) -> bytes:
        members = text(b"avro.codec") + text(codec) + text(b"avro.schema") + text(schema)
        return b"Obj\x01" + long(2) + members + long(0) + b"s" * 16

    def file(codec: bytes, schema: bytes, block: bytes, count: int) -> bytes:
        return head(codec, schema) + long(count) + text(block) + b"s" * 16

    def read(content: bytes) -> int:
        return sum(1 for _ in ContainerReader(io.BufferedReader(io.BytesIO(content)), "file"))

    def deflated(length: int) -> bytes:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        return packer.compress(b"\0" * length) + packer.flush()

    files = {
        "a block that grows to 1 GB": file(b"deflate", b'"bytes"', deflated(1_000_000_000)[:size], 1_000),
        "a block that grows to 200 MB": file(b"deflate", b'"bytes"', deflated(200_000_000), 200_000_000),
        "many nulls": file(b"null", b'"null"', b"", 100_000_000),
        "many empty payloads": file(b"null", b'"bytes"', b"\0" * size, size),
        "a block that says too much": file(b"null", b'"bytes"', b"\0" * size, 1 << 40),
        "a block that says too little": file(b"null", b'"bytes"', b"\0" * size, 1),
        "a block of fewer than none": file(b"null", b'"bytes"', b"\0" * size, -1),
        "a block without payloads": file(b"null", b'"bytes"', b"\0" * size, 0),
        "a block of a length below zero": head(b"null", b'"bytes"') + long(1) + long(-size) + b"\0" * size,
        "a block of 2^40 bytes": head(b"null", b'"bytes"') + long(1) + long(1 << 40) + b"\0" * size,
        "many small blocks": head(b"null", b'"bytes"') + (b"\2\2\0" + b"s" * 16) * (size // 19),
        "many small deflated blocks": head(b"deflate", b'"bytes"')
        + (long(1) + text(deflated(1)) + b"s" * 16) * (size // 21),
        "a block that is cut": file(b"deflate", b'"bytes"', deflated(size)[:-4], size),
        "a block that is not deflated": file(b"deflate", b'"bytes"', b"\xff" * size, size),
        "another mark behind each block": head(b"null", b'"bytes"') + (b"\2\2\0" + b"t" * 16) * (size // 19),
        "a long schema": file(b"null", b'"' + b"x" * size, b"", 0),
    }
    for name, content in files.items():
        yield f"container: {name}", partial(read, content)


def of_format(format: str, size: int, cases: int) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Yield the kind, the case and the work of a format, so many cases of its messages and of its payloads by lot."""
    places, lies, open_framed = [*messages(format)], [*payloads(format)], opened(format)
    for case, fill in Random(format).sample(places, min(cases or len(places), len(places))):
        for name, work in works(format, fill(size)):
            yield f"{format}: {name}", case, work
    for case, fill in Random(format).sample(lies, min(cases or len(lies), len(lies))):
        payload = fill(size)
        yield f"{format}: decode what lies", case, partial(decode, payload, format)
        yield f"{format}: open what lies", case, partial(open_framed, payload)


def others(size: int) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Yield the kind, the case and the work of what is of no format."""
    for case, work in chain(schemas(size), statements(size), containers(size)):
        kind, _, name = case.partition(": ")
        yield kind, name, work


def main(size: int, cases: int, kinds: list[str]) -> None:
    """Print what takes more than its bound as it is found, and the worst of each kind at the end."""
    worst: dict[str, list[Cost]] = {}
    tried = [of_format(format, size, cases) for format in kinds or FORMATS if format in FORMATS]
    for kind, case, work in chain(*tried, others(size) if not kinds or "others" in kinds else ()):
        made = cost(work)._replace(case=case)
        slowest, largest = worst.setdefault(kind, [made, made])
        worst[kind] = [max(slowest, made, key=lambda one: one.seconds), max(largest, made, key=lambda one: one.grown)]
        if made.seconds > MOST_SECONDS or made.grown > MOST_KIB:
            print("beyond:", kind, case, f"{made.seconds:.2f} s {made.grown // 1024} MiB", made.error, flush=True)  # noqa: T201
    for kind, (slowest, largest) in worst.items():
        print(  # noqa: T201
            f"| {kind} | {slowest.seconds:.2f} s, {slowest.case} | {largest.grown / 1024:.0f} MiB, {largest.case} |"
        )


if __name__ == "__main__":
    main(*map(int, (sys.argv[1:3] + ["1000000", "0"][len(sys.argv) - 1 :])), sys.argv[3:])
