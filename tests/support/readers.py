"""What other software reads of the files that `cdcavro tables` writes, by kind of column.

Each kind is a table of its own, so that what a reader refuses takes nothing else with it, and once all are columns of
one table. The page on readers says what becomes of each; the tests hold the readers that are installed against it.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from click.testing import CliRunner

from cdcavro.cli import main
from cdcavro.table.table_names import mangle
from support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE = ROOT / "docs" / "reference" / "readers.md"
YES, NO = "yes", "no"
PLAIN = "plain"
_BEHIND = ("unparsed", "absent")
MOMENT = dt.datetime(2024, 2, 29, 12, 0, 0, 123_456)  # noqa: DTZ001  a local time


class Kind(NamedTuple):
    """A kind of column: its declared type, a value as Canal sends it, and what a reader should make of it."""

    type: str
    text: str | None
    value: Any
    column: str = "c"


KINDS = {
    "boolean": Kind("boolean", "1", True),
    "int": Kind("int", "-7", -7),
    "long": Kind("bigint", "9007199254740993", 2**53 + 1),
    "float": Kind("float", "0.5", 0.5),
    "double": Kind("double", "0.1", 0.1),
    "decimal": Kind(
        "decimal(38,4)", "-1234567890123456789012345678901234.5678", Decimal("-1234567890123456789012345678901234.5678")
    ),
    "unsigned bigint": Kind("bigint unsigned", "18446744073709551615", Decimal(2**64 - 1)),
    "string": Kind("varchar(20)", "é 😀", "é 😀"),
    "bytes": Kind("varbinary(9)", "\x00\xff", b"\x00\xff"),
    "date": Kind("date", "2024-02-29", MOMENT.date()),
    "time": Kind("time(6)", "12:00:00.123456", MOMENT.time()),
    "timestamp": Kind("timestamp(6)", "2024-02-29 12:00:00.123456", MOMENT.replace(tzinfo=dt.UTC)),
    "local timestamp": Kind("datetime(6)", "2024-02-29 12:00:00.123456", MOMENT),
    "null": Kind("int", None, None),
    "a name with a blank": Kind("int", "1", 1, "c c"),
    "`unparsed` with a text": Kind("date", "0000-00-00", {"misfit": "0000-00-00"}, "unparsed"),
    "`absent` with a name": Kind("int", None, ["c"], "absent"),
}


def said() -> dict[str, dict[str, dict[str, str]]]:
    """Return what the page says: by the kind of file, the reader and the kind of column."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for title, text in re.findall(r"^## (\w+).*?\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        # Behind the first table may be one of what was tried by hand.
        cells = next(block for block in text.strip().split("\n\n") if block.startswith("|"))
        lines = [line.strip("|").split("|") for line in cells.splitlines()]
        head, _, *rows = [[one.strip() for one in line] for line in lines]
        of_reader = {reader: {row[0]: row[i] for row in rows} for i, reader in enumerate(head) if i}
        found[title.lower()] = of_reader
    return found


def written(folder: Path, name: str, kind: str) -> Path:
    """Return a file with the changes of a table that has a column of a kind, the last of which has its value."""
    made = KINDS[name]
    column = {"unparsed": "misfit", "absent": "c"}.get(made.column, made.column)
    row = {} if made.column == "absent" else {column: made.text}
    return _written(folder, kind, _messages(row, {column: made.type}))


def written_together(folder: Path, kind: str) -> tuple[Path, dict[str, str]]:
    """Return a file of a table that has a column of each kind, and the names of these by their kinds."""
    messages, columns = messages_together()
    return _written(folder, kind, messages), columns


def messages_together() -> tuple[list[str], dict[str, str]]:
    """Return messages of a table that has a column of each kind, and the names of these by their kinds."""
    columns = {name: f"c{i}" if made.column == "c" else made.column for i, (name, made) in enumerate(KINDS.items())}
    own = {columns[name]: made for name, made in KINDS.items() if columns[name] not in _BEHIND}
    own["misfit"] = KINDS["`unparsed` with a text"]
    types = {column: made.type for column, made in own.items()} | {"c": "int"}
    return _messages({column: made.text for column, made in own.items()}, types), columns


def _messages(row: dict[str, str | None], types: dict[str, str]) -> list[str]:
    """Return two inserts as Canal sends them, the first with nulls."""
    common = {"type": "INSERT", "database": "s", "table": "t", "pkNames": ["id"], "mysqlType": {"id": "int"} | types}
    rows = [{"id": "0"} | dict.fromkeys(types), {"id": "1"} | row]
    return [json.dumps(common | {"id": i, "es": i, "data": [data]}) for i, data in enumerate(rows)]


def _written(folder: Path, kind: str, messages: list[str]) -> Path:
    folder.mkdir(exist_ok=True)
    source = folder / "in.jsonl"
    source.write_text("".join(message + "\n" for message in messages), encoding="utf-8")
    made = ["--plain"] if kind == PLAIN else ["--as", kind]
    arguments = ["tables", source, "--out", folder / "out", "--zone", "UTC", *made]
    done = CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return folder / "out" / "s.t" / f"v1.{'avro' if kind == PLAIN else kind}"


def cell(read: Callable[[], Any], name: str) -> str:
    """Return what a reader makes of a kind: `yes`, `no` where it refuses it, or what it makes of the value instead."""
    try:
        value = read()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | AssertionError | NameError | TypeError):
            raise
        return NO
    return YES if is_same(plain(value), KINDS[name].value) else instead(value)


def plain_name(column: str) -> str:
    """Return what a column is called in plain Avro."""
    return f"_cdc_{column}" if column in _BEHIND else mangle(column)


def plain(value: Any) -> Any:
    """Return a value in the form that all readers share: maps as dicts, bytes as bytes, local moments without a zone."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    if isinstance(value, list) and value and isinstance(value[0], dict) and set(value[0]) == {"key", "value"}:
        return {one["key"]: one["value"] for one in value}
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return value


def is_same(value: Any, expected: Any) -> bool:
    """Return whether a value is the expected one, to its last digit, and of its type."""
    if isinstance(expected, float) and isinstance(value, float):
        return math.isclose(value, expected, rel_tol=0)
    if isinstance(expected, dt.datetime) and isinstance(value, dt.datetime):
        return (value.tzinfo is None) == (expected.tzinfo is None) and value == expected
    return type(value) is type(expected) and value == expected


def instead(value: Any) -> str:
    """Return what a value is instead of the one that it should be."""
    names = {int: "a number", str: "text", bytes: "bytes", dict: "a struct", list: "a list", Decimal: "a decimal"}
    return names.get(type(plain(value)), type(value).__name__)
