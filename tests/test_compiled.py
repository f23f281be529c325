"""The compiled build: it is there where it shall be, and it does to the byte what the sources do that it is made from."""

from __future__ import annotations

import ast
import importlib
import io
import json
import os
import random
import subprocess
import sys
import tomllib
from pathlib import Path

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.engine.machine import COMPILED
from cdcavro.exact import jsontext
from cdcavro.wire import message_reader
from cdcavro.wire.formats import REGISTRY
from support.messages import golden_files
from support.places import ROOT
from support.plain_writer import assert_plain
from support.roundtrip import outcome
from support.strategies import damaged, numbers, texts

pytestmark = pytest.mark.slow

PACKAGE = Path(cdcavro.__file__).parent
SOURCES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cdcavro"]["compiled"]
compiled = pytest.mark.skipif(not COMPILED, reason="the sources run as they are")


@pytest.mark.skipif("CDCAVRO_BUILD" not in os.environ, reason="only tox says which build it wants")
@pytest.mark.parametrize("source", SOURCES)
def test_build_is_the_one_that_the_environment_names(source):
    """Every module that `pyproject.toml` lists is compiled, or none is."""
    module = importlib.import_module(source.rpartition(".")[0].replace("/", "."))
    is_compiled = not module.__file__.endswith(".py")
    wanted = os.environ["CDCAVRO_BUILD"] == "compiled" and "CDCAVRO_ENGINE" not in os.environ
    assert is_compiled is COMPILED is wanted


def test_the_engine_is_switched_off_by_one_word():
    """Another one is refused with the first name that is used, so that nobody measures the engine without knowing it."""
    command = [sys.executable, "-c", "from cdcavro import encode"]
    done = subprocess.run(
        command,
        env=os.environ | {"CDCAVRO_ENGINE": "of"},
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1] == "ImportError: CDCAVRO_ENGINE: expected 'off' or nothing, got 'of'"


@pytest.mark.parametrize("source", SOURCES)
def test_every_compiled_module_has_a_source_in_python(source):
    """Where nothing compiles, that is what runs."""
    assert (ROOT / source).is_file()
    assert (ROOT / source).with_suffix(".py").is_file()


@pytest.mark.parametrize("source", [source for source in SOURCES if source.endswith(".py")])
def test_no_compiled_module_takes_a_slice_of_a_display_with_a_star(source):
    """Cython 3.3 takes it of what is written, before the star is spread: `(*(1, 2), 3)[:2]` has three items there."""
    tree = ast.parse((ROOT / source).read_text(encoding="utf-8"))
    taken = [node.value for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
    starred = [
        node.lineno
        for node in taken
        if isinstance(node, (ast.Tuple, ast.List)) and any(isinstance(item, ast.Starred) for item in node.elts)
    ]
    assert starred == []


# Whole messages: the sources run in a process of their own.
_OTHER = """
import sys
import cdcavro
from cdcavro.engine import machine
from cdcavro.formats import oms_canal
assert not machine.COMPILED
assert oms_canal.__file__.endswith(".py")
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
    without = os.environ | {"CDCAVRO_ENGINE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", code], input=lines, env=without, capture_output=True, text=True, check=False
    )
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
    message_reader._record(REGISTRY[format].envelope, message_reader._ReaderPlace("", 1, members))
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
