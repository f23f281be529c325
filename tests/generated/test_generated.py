"""Generated modules pass mypy --strict, ruff check with all rules and ruff format, whatever their schemas.

The file's own list of rules that do not apply to it is all that is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

import cdcavro
from cdcavro.avro.schema import parse_schema
from cdcavro.errors import SchemaError
from cdcavro.records.codegen import KINDS, NamedSchema, generate
from support.generated_modules import HARD_NAMES, own_names
from support.hostile_schemas import PAYLOADS, hostile, schemas
from support.messages import shop_canal
from support.schema_pairs import pairs
from support.wire import array, enum, field, mapping, record

for _needed in ("mypy", "pydantic", "ruff"):
    pytest.importorskip(_needed)

RANDOM = int(os.environ.get("CDCAVRO_EXAMPLES") or 40)
RUFF = (sys.executable, "-m", "ruff")
WIDTH = ("--isolated", "--no-cache", "--line-length", "120")
USES = '''
"""Code that uses records; a comment says what is wrong in a line."""

import cdcavro
from {module} import ColumnValue, EventType, ExactNumber, FlatMessage

message = FlatMessage.from_avro(b"", writer=cdcavro.parse_schema('"long"'))
rows: list[dict[str, ColumnValue] | None] | None = message.data
first: ColumnValue = next((row["a"] for row in rows or [] if row), None)
digits: str = first.text if isinstance(first, ExactNumber) else ""
kind: EventType = FlatMessage(type=EventType.INSERT, es=5, data=[{{"a": ExactNumber(text="1.20")}}]).type
raw: bytes = FlatMessage.from_json("{{}}").to_json()
table: str = message.table  # assignment
FlatMessage()  # call-arg
FlatMessage(type="INSERT")  # arg-type
FlatMessage.from_avro("text")  # arg-type
message.to_avro().sql  # attr-defined
'''


def tables():
    """Return the schemas of all versions of the shop's tables, by name."""
    found = cdcavro.Tables()
    for message in shop_canal():
        for change in cdcavro.to_changes(message, "canal"):
            found.add(change)
    for table in found.tables:
        for version in table.versions:
            for part in ("envelope", "row", "key"):
                if getattr(version, part) is not None:
                    yield f"table{table.number}_v{version.version}_{part}", getattr(version, part)


def write(folder: Path, name: str, text: str) -> None:
    """Write a module."""
    (folder / f"{name}.py").write_text(text, encoding="utf-8")


def run(folder: Path, *command: str) -> str:
    """Run a tool in a folder; gives what it says."""
    package = Path(cdcavro.__file__).parents[1]
    path = {} if package.name == "site-packages" else {"MYPYPATH": str(package)}
    done = subprocess.run(
        command, cwd=folder, env=os.environ | path, capture_output=True, text=True, check=False, encoding="utf-8"
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def assert_formatted(folder: Path) -> None:
    """Ruff has nothing to say."""
    assert run(folder, *RUFF, "format", *WIDTH, "--diff", ".") == ""
    assert run(folder, *RUFF, "check", *WIDTH, "--select", "ALL", "--quiet", ".") == ""


def assert_typed(folder: Path) -> None:
    """Mypy has nothing to say; Spark's types have none where Spark is not installed."""
    files = sorted(path.name for path in folder.glob("*.py") if not path.stem.endswith("_spark"))
    assert not files or run(folder, sys.executable, "-m", "mypy", "--strict", "--cache-dir", ".mypy", *files) == ""


@pytest.mark.slow
def test_modules_of_every_schema(tmp_path):
    """All wire schemas, change, and all versions of the shop's tables, alone and together, of all kinds."""
    named = [(name, cdcavro.load_schema(name)) for name in (*cdcavro.FORMATS, "change")] + list(tables())
    for kind in KINDS:
        for name, schema in named:
            write(tmp_path, f"{name}_{kind}", generate([NamedSchema(name, schema)], kind))
        write(tmp_path, f"all_{kind}", generate([NamedSchema(name, schema) for name, schema in named], kind))
    assert_formatted(tmp_path)
    assert_typed(tmp_path)


# Records within each other, under names so long that their annotations have no place on a line.
_ENDLESS = record(
    field("next", ["null", "R"], default=None),
    field("all", ["null", "R", *(record(field("back", array("R")), name=f"N{i}{'n' * 30}") for i in range(9))]),
    field("kids", mapping(array(["null", "R", "int", "long", "string"])), default={}),
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_modules_of_hard_schemas(tmp_path, kind):
    """Names that Python has itself, texts with code, unions of all branches, long names and types, defaults."""
    deep: object = "string"
    for i in range(60):
        deep = record(field("a" * 40, array(deep)), name=f"R{i}") if i % 2 else mapping(["null", "int", deep])
    names = [name for name in HARD_NAMES if name not in ("int", "R")]
    hard = {
        "fields": record(*(field(name, ["null", "long"], default=None) for name in HARD_NAMES)),
        "own": record(*(field(name, ["null", "long"], default=None) for name in own_names())),
        "own_types": record(*(field(f"f{i}", record(field("a"), name=f"q.{n}")) for i, n in enumerate(own_names()))),
        "types": record(*(field(f"f{i}", record(field("a"), name=name)) for i, name in enumerate(names))),
        "symbols": record(field("e", enum(*HARD_NAMES, "title", "mro", "x" * 110))),
        "deep": record(field("a", deep), name="D"),
        "names": record(field("x" * 64, "string", default="d" * 60), field("y" * 300, ["null", "int"], default=None)),
        "union": record(
            field("u", ["null", "int", "long", "float", "double", "bytes", *(record(name=f"N{i}") for i in range(40))]),
            field("w", array(["null", *(enum("A", name=f"E{i}{'e' * 30}") for i in range(6))])),
        ),
        "defaults": record(
            *(field(f"{'s' * i}", "string", default="d" * 58) for i in range(30, 64)),
            *(field(f"l{i}", array("string"), default=["x" * 9] * i) for i in range(9)),
            *(field("b" * i, "boolean", default=True) for i in range(60, 70)),
            field("raw", "bytes", default="\u00ff" * 30),
            *(field(f"d{i}", "double", default=number) for i, number in enumerate([1e22, -1e22, 1e-7, 5e-324, 1e16])),
            field("m", mapping(array("long")), default={"a": [1], "b": []}),
        ),
        "empty": record(),
        "nothing": record(
            field("e", enum(name="E")), field("u", []), field("n", "float", default="NaN"), field("größe")
        ),
        **({} if kind == "spark" else {"endless": _ENDLESS}),
        **{f"text{i}": hostile(text) for i, text in enumerate(PAYLOADS)},
    }
    for name, declared in hard.items():
        write(tmp_path, f"{name}_{kind}", generate([NamedSchema(name, parse_schema(json.dumps(declared)))], kind))
    assert_formatted(tmp_path)
    assert_typed(tmp_path)


@pytest.mark.slow
def test_modules_of_random_schemas(tmp_path):
    """Random types, names and texts, of all kinds."""
    drawn: list[str] = []

    @settings(max_examples=RANDOM, suppress_health_check=list(HealthCheck))
    @given(pairs(), schemas())
    def draw(pair, declared):
        drawn.extend([pair.reader, json.dumps(declared)])

    draw()
    for i, text in enumerate(drawn):
        for kind in KINDS:
            try:
                write(tmp_path, f"random{i}_{kind}", generate([NamedSchema("t", parse_schema(text))], kind))
            except SchemaError:
                # A default of random bytes that is no decimal of Python's.
                continue
    assert len(list(tmp_path.glob("*.py"))) > RANDOM
    assert_formatted(tmp_path)
    assert_typed(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS[:-1])
def test_types_are_checked_where_records_are_used(tmp_path, kind):
    """What is right passes, and each line that is wrong is an error of its own kind."""
    source = USES.format(module=f"canal_{kind}")
    write(tmp_path, f"canal_{kind}", generate([NamedSchema("canal", cdcavro.load_schema("canal"))], kind))
    write(tmp_path, "uses", source)
    said = run(tmp_path, sys.executable, "-m", "mypy", "--strict", "--cache-dir", ".mypy", "uses.py")
    found = {
        int(line.split(":")[1]): line.rpartition("[")[2].rstrip("]") for line in said.splitlines() if ": error:" in line
    }
    wanted = {
        number: line.partition("# ")[2] for number, line in enumerate(source.split("\n"), start=1) if "  # " in line
    }
    assert found == wanted
