"""Rooms that a trip enters: whoever follows one call through the code has few folders to look into.

A room is a folder or a module directly in the package of which a function is called on the way. What
is done once, such as reading a wire schema or importing a name, is done before.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import cdcavro
from cdcavro import Tables, evolve, registry
from cdcavro.cli import main
from cdcavro.engine.machine import COMPILED
from cdcavro.records.codegen import NamedSchema, generate
from support.messages import golden_files, shop_canal, shop_debezium

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

pytestmark = pytest.mark.skipif(COMPILED, reason="compiled functions are not traced")

PACKAGE = str(Path(cdcavro.__file__).parent) + os.sep
for public in cdcavro.__all__:
    getattr(cdcavro, public)
READ = {"exact", "avro", "engine", "wire", "change", "formats", "transcoding"}
OMS = golden_files("oms_canal")["insert"]
CANAL = next(message for message in shop_canal() if b'"type":"UPDATE"' in message)
DEBEZIUM = next(message for message in shop_debezium() if b'"op":"u"' in message)
PAYLOAD = cdcavro.encode(OMS, "oms_canal")
CHANGE = cdcavro.to_changes(CANAL, "canal")[0]
OLDER = cdcavro.parse_schema('{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}')
NEWER = cdcavro.parse_schema('{"type":"record","name":"R","fields":[{"name":"b","type":"long","aliases":["a"]}]}')


def rooms_of(trip: Callable[[], Any]) -> set[str]:
    """Return the rooms that a trip enters."""
    rooms: set[str] = set()

    def enter(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name != "<module>":
            rooms.add(Path(code.co_filename.removeprefix(PACKAGE)).parts[0].removesuffix(".py"))

    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        trip()
    finally:
        sys.setprofile(before)
    return rooms


def run(*arguments: Any) -> None:
    """Run a command that succeeds."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("trip", "rooms"),
    [
        pytest.param(lambda: cdcavro.encode(OMS, "oms_canal"), {"exact", "avro", "wire", "engine"}, id="encode"),
        pytest.param(lambda: cdcavro.decode(PAYLOAD, "oms_canal"), {"exact", "avro", "wire", "engine"}, id="decode"),
        pytest.param(lambda: cdcavro.to_changes(OMS, "oms_canal"), READ, id="to_changes of oms_canal"),
        pytest.param(lambda: cdcavro.to_changes(CANAL, "canal"), READ, id="to_changes of canal"),
        pytest.param(lambda: cdcavro.to_changes(DEBEZIUM, "debezium"), READ, id="to_changes of debezium"),
        pytest.param(lambda: cdcavro.transcode(CANAL, "canal", "debezium"), READ, id="transcode canal"),
        pytest.param(lambda: cdcavro.transcode(DEBEZIUM, "debezium", "canal"), READ, id="transcode debezium"),
        pytest.param(lambda: cdcavro.verdict(NEWER, OLDER), {"errors", "avro"}, id="verdict"),
        pytest.param(lambda: generate([NamedSchema("r.avsc", NEWER)], "dataclass"), {"avro", "records"}, id="generate"),
    ],
)
def test_a_trip_of_one_call_enters_few_rooms(trip, rooms):
    """No layer is entered that the call has nothing to do with."""
    trip()
    assert rooms_of(trip) == rooms


def test_a_change_on_its_way_to_a_table_enters_few_rooms():
    """The first one makes the table, any other finds it."""
    Tables().add(CHANGE)
    tables = Tables()
    assert rooms_of(lambda: tables.add(CHANGE)) <= {"errors", "exact", "avro", "engine", "change", "table"}
    assert rooms_of(lambda: tables.add(CHANGE)) <= {"exact", "avro", "engine", "change", "table"}


def test_a_statement_on_its_way_to_a_version_enters_few_rooms():
    """A table's schema is asked of nothing that reads messages."""
    schema = Tables().add(CHANGE)[0].schema
    assert rooms_of(lambda: evolve(schema, "ALTER TABLE t ADD x INT")) <= {"errors", "exact", "avro", "engine", "table"}


def test_a_schema_on_its_way_to_a_registry_enters_few_rooms(tmp_path):
    """Avro's rules and the registry, nothing of messages."""
    schemas = registry.connect(f"file:{tmp_path}")
    assert rooms_of(lambda: schemas.publish(OLDER, "orders-value")) <= {"exact", "avro", "registry"}


def test_a_command_enters_few_rooms(tmp_path):
    """A command is a leaf: it calls what a program would call."""
    lines = tmp_path / "changes.jsonl"
    lines.write_bytes(CANAL + b"\n")
    encoded = ["encode", lines, "--out", tmp_path / "changes.avro", "--force"]
    typed = ["tables", lines, "--out", tmp_path / "tables", "--force"]
    run(*encoded)
    run(*typed)
    assert rooms_of(lambda: run(*encoded)) <= {"errors", "exact", "avro", "engine", "wire", "files", "cli"}
    assert rooms_of(lambda: run(*typed)) <= {*READ, "errors", "table", "files", "cli"}
