"""The compiled build: it is there where it shall be, and it does to the byte what the sources do that it is made from."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.avro import binary, buffer
from cdcavro.exact import jsontext, scan
from cdcavro.wire.formats import REGISTRY
from cdcavro.wire.reading import plan
from support.messages import golden_files
from support.places import ROOT
from support.plain_writer import assert_plain
from support.roundtrip import outcome
from support.strategies import damaged, numbers, strings, texts

pytestmark = pytest.mark.slow

PACKAGE = Path(cdcavro.__file__).parent
DECLARED = sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "cdcavro").rglob("*.pxd"))
compiled = pytest.mark.skipif(not buffer.COMPILED, reason="the sources run as they are")


def _pure(path: str):
    """Load the source of a module, also where the module is compiled."""
    declared = importlib.util.spec_from_file_location(f"pure_{Path(path).stem}", PACKAGE / path)
    module = importlib.util.module_from_spec(declared)
    declared.loader.exec_module(module)
    return module


PURE = _pure("avro/buffer.py")
PURE_SCAN = _pure("exact/scan.py")


@pytest.mark.skipif("CDCAVRO_BUILD" not in os.environ, reason="only tox says which build it wants")
@pytest.mark.parametrize("name", DECLARED)
def test_build_is_the_one_that_the_environment_names(name):
    """Every module that has a `.pxd` is compiled, or none is."""
    is_compiled = not importlib.import_module(name).__file__.endswith(".py")
    assert is_compiled is buffer.COMPILED is (os.environ["CDCAVRO_BUILD"] == "compiled")


def _appended(module, value):
    out = module.Buffer()
    match value:
        case int():
            out.write_long(value)
        case float():
            out.write_double(value)
        case str():
            out.write_string(value)
        case _:
            raise TypeError(type(value).__name__)
    size = len(out)
    out.append(7)
    out.write_raw(b"raw")
    out.cut(size + 2)
    out.write_again(size // 2, size + 1)
    return out.taken()


_LONGS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, -1, 2**63 - 1, -(2**63), 63, 64, -64, -65])


@given(_LONGS | st.floats() | strings | st.sampled_from(["x" * 5000, "é" * 70, "\U0001f600" * 9]))
def test_buffers_append_the_same(value):
    """Both buffers give the same bytes, however long."""
    assert _appended(buffer, value) == _appended(PURE, value)


def test_buffer_takes_no_lone_surrogate():
    """No UTF-8 is written that nobody could read."""
    for module in (buffer, PURE):
        with pytest.raises(UnicodeEncodeError):
            module.Buffer().write_string("\ud800")


@given(st.integers(-(2**70), 2**70) | _LONGS)
def test_bounds_of_integers_are_the_same(value):
    """What fits is told exactly at both ends of 32 and 64 bits."""
    for most in (2**31 - 1, 2**63 - 1):
        fits = -most - 1 <= value <= most
        assert buffer.Buffer().fits(value, most) is PURE.Buffer().fits(value, most) is fits


def _viewed(module, step):
    """Take a step while somebody looks at the bytes, and the same step afterwards."""
    out = module.Buffer()
    out.write_raw(b"raw")
    with memoryview(out) as view:
        kept = outcome(BufferError, step, out)
        assert (bytes(view), view.readonly) == (b"raw", module.COMPILED)
    step(out)
    return str(kept), out.taken()


@pytest.mark.parametrize(
    "step",
    [
        lambda out: out.append(7),
        lambda out: out.write_long(7),
        lambda out: out.write_string("text"),
        lambda out: out.write_raw(b"x" * 5000),
        lambda out: out.cut(1),
    ],
)
def test_bytes_that_are_looked_at_stay_where_they_are(step):
    """Arrow keeps the memory of a buffer, which nothing moves then."""
    kept, after = _viewed(buffer, step)
    assert (kept, after) == _viewed(PURE, step)
    assert kept == "Existing exports of data: object cannot be re-sized"


def _read(module, raw: bytes, steps: str):
    """Take steps through bytes and give what each one gave, or the error that ended them."""
    cursor, found = module.ByteReader(raw), []
    ways = {
        "b": cursor.read_byte,
        "l": cursor.read_long,
        "s": cursor.read_string,
        "n": cursor.read_name,
        "d": lambda: repr(cursor.read_double()),
        "t": lambda: cursor.take(2),
    }
    for step in steps:
        got = outcome(cdcavro.PayloadError, ways[step])
        found.append((str(got), cursor.position))
        if isinstance(got, cdcavro.PayloadError):
            break
    return found


_LENGTHS = st.sampled_from([b"", b"\x80", b"\xff" * 9, b"\xff" * 10, b"\x80" * 9 + b"\x02", b"\xff" * 8 + b"\x01"])
_STRINGS = strings.map(lambda value: _appended(PURE, value)[:-2])


@given(st.lists(st.binary(max_size=12) | _LENGTHS | _STRINGS, max_size=4).map(b"".join), st.text("blsndt", max_size=6))
def test_cursors_read_the_same(raw, steps):
    """The same values, the same positions, the same sentences, and nothing behind the end."""
    assert _read(buffer, raw, steps) == _read(PURE, raw, steps)


@given(numbers | strings | st.text("-+.eE0123456789", max_size=8) | st.just("1\ud800"))
def test_number_is_a_number_in_both_builds(value):
    """The grammar of RFC 8259, by hand in C and as an expression in Python."""
    assert scan.is_number(value) is PURE_SCAN.is_number(value)


@given(st.text("019a", max_size=60) | st.integers(17, 20).map(lambda count: "x" * 7 + "5" * count + "y" * 9))
def test_long_numbers_are_found_in_both_builds(value):
    """Nineteen digits on end, wherever they stand."""
    raw = value.encode()
    expected = any(raw[i : i + 19].isdigit() and len(raw) >= i + 19 for i in range(len(raw)))
    assert scan.has_long_number(raw) is PURE_SCAN.has_long_number(raw) is expected


@given(st.sampled_from(cdcavro.FORMATS).flatmap(texts))
def test_members_are_counted_alike(sent):
    """Compiled code counts exactly; the sources may find it hard to tell, but they are never wrong."""
    raw = sent.encode()
    members = _members(jsontext.parse(raw))
    for count in range(max(0, members - 2), members + 3):
        assert PURE_SCAN.has_members(raw, count) <= scan.has_members(raw, count) <= (count == members)


def _members(value) -> int:
    if type(value) is dict:
        return len(value) + sum(map(_members, value.values()))
    return sum(map(_members, value)) if type(value) is list else 0


@pytest.mark.parametrize("raw", [b"", b"-", b'"', b'"\\', b"-0", b'{"a":-0', b'":', b'{"a":1}'])
def test_counting_members_stays_within_the_text(raw):
    """Text that ends anywhere is read to its end and no further."""
    assert scan.has_members(raw, 99) is PURE_SCAN.has_members(raw, 99) is False


# Whole messages: the other build runs in a process of its own, made to pass compiled modules by.
_OTHER = """
import sys
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path

package = Path(sys.argv[1])

def sources(path):
    if not Path(path).resolve().is_relative_to(package):
        raise ImportError
    return FileFinder(path, (SourceFileLoader, [".py"]))

sys.path_hooks.insert(0, sources)
import cdcavro
from cdcavro.avro import buffer
assert not buffer.COMPILED
for line in sys.stdin:
    verb, format, given = line.split(" ")
    try:
        print(getattr(cdcavro, verb)(bytes.fromhex(given), format).hex())
    except cdcavro.MessageError as error:
        print(str(error).encode().hex())
"""


def _damaged(chance: random.Random, raw: bytes) -> bytes:
    found = bytearray(raw)
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        at = chance.randrange(len(found))
        match chance.randrange(4):
            case 0:
                found[at] ^= 1 << chance.randrange(8)
            case 1:
                del found[at:]
            case 2:
                found[at:at] = chance.choice((b"\xff" * 9, b"\x00", b"\x02", b"\xfe\xff\x01", b"-0", b'"a":1,', b"\\"))
            case 3:
                del found[at : at + chance.randrange(1, 5)]
            case _:
                raise AssertionError
        if not found:
            break
    return bytes(found)


def _cases(seed: int, rounds: int) -> list[tuple[str, str, bytes]]:
    chance = random.Random(seed)
    cases = []
    for format in cdcavro.FORMATS:
        goldens = list(golden_files(format).values())
        for _ in range(rounds):
            golden = chance.choice(goldens)
            cases.append(("encode", format, _damaged(chance, golden)))
            cases.append(("decode", format, _damaged(chance, cdcavro.encode(golden, format))))
    return cases


def _done(verb: str, format: str, given: bytes) -> str:
    found = outcome(cdcavro.MessageError, getattr(cdcavro, verb), given, format)
    return (found if isinstance(found, bytes) else str(found).encode()).hex()


@compiled
def test_both_builds_give_the_same_payload_text_or_sentence():
    """Messages and payloads, whole and damaged, end alike in both builds."""
    cases = _cases(int(os.environ.get("CDCAVRO_SEED", "1")), int(os.environ.get("CDCAVRO_ROUNDS", "60")))
    lines = "".join(f"{verb} {format} {given.hex()}\n" for verb, format, given in cases)
    path = [str(PACKAGE.parent), *sys.path]
    code = f"import sys; sys.path[:0] = {path!r}\n{_OTHER}"
    command = [sys.executable, "-c", code, str(PACKAGE.resolve())]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    for case, theirs in zip(cases, done.stdout.split("\n"), strict=False):
        assert (case, _done(*case)) == (case, theirs)


@pytest.mark.parametrize("format", cdcavro.FORMATS)
@given(data=st.data())
def test_payload_is_what_an_obvious_writer_writes(format, data):
    """The exact parser and a plain recursive writer, with no plan and no fast way, give the same payload."""
    sent = data.draw(texts(format))
    assert_plain(format, jsontext.parse(sent), cdcavro.encode(sent, format))


@pytest.mark.parametrize("format", cdcavro.FORMATS)
@given(data=st.data())
def test_text_is_what_the_record_renders_as(format, data):
    """Text that comes straight from the payload is that of the record that was read, or both are refused alike."""
    payload = data.draw(damaged(cdcavro.encode(data.draw(texts(format)), format)))
    read = outcome(cdcavro.PayloadError, REGISTRY[format].read, payload)
    decoded = outcome(cdcavro.PayloadError, cdcavro.decode, payload, format)
    assert str(decoded) == str(read if isinstance(read, cdcavro.PayloadError) else jsontext.render(read))


def _pointers(format: str) -> list[str]:
    members: dict[str, object] = {}
    plan._record(REGISTRY[format].envelope, plan._Context("", 1, members))
    new = [f"{one}/{name}" for one in [*members, "/data/0"] for name in ("new", "a~1b", "0", "id")]
    return [*members, *new, "", "new", "/~"]


def _extras(texts: dict[str, str]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, {"type": "map", "values": "string"}, texts)
    return out.getvalue()


@pytest.mark.parametrize("format", cdcavro.FORMATS)
@given(data=st.data())
def test_extras_stand_in_the_text_as_in_the_record(format, data):
    """Whatever extras say, of members that are there or not, the text is that of the record, or both are refused alike."""
    schema = fastavro.parse_schema(json.loads(REGISTRY[format].schema.json))
    golden = data.draw(st.sampled_from([*golden_files(format).values()]))
    payload = cdcavro.encode(golden, format)
    own = fastavro.schemaless_reader(io.BytesIO(payload), schema, None)["extras"]
    spelled = st.sampled_from(["", "null", "true", "1.50", '"x"', '"é"', '"\\n"', " 1", "{}", "-", "[1, 2]"]) | numbers
    extras = data.draw(st.dictionaries(st.sampled_from(_pointers(format)), spelled, max_size=6))
    made = payload.removesuffix(_extras(own)) + _extras(dict(data.draw(st.permutations([*(own | extras).items()]))))
    read = outcome(cdcavro.PayloadError, REGISTRY[format].read, made)
    expected = str(read if isinstance(read, cdcavro.PayloadError) else jsontext.render(read))
    assert str(outcome(cdcavro.PayloadError, cdcavro.decode, made, format)) == expected


def test_fault_sentences_have_one_home():
    """Both builds take them from `binary`."""
    assert str(binary.short("1 byte", 2, 2)) == "message: $: expected 1 byte, got 0 at byte 2, where the payload ends"
