"""The reference names all that there is: what it is made from is held against it, whether the site is built or not."""

from __future__ import annotations

import doctest
import importlib
import inspect
import io
import json
import re
from datetime import UTC
from decimal import Decimal
from typing import Any

import fastavro
import msgspec
import pytest
from click.testing import CliRunner

import cdcavro
from cdcavro.cli import main
from cdcavro.cli.group import INTERRUPTED, PIPE_CLOSED, REJECTED, TERMINATED, UNUSABLE
from cdcavro.wire.attributes import EnumRule, FieldRule, FormatRule
from cdcavro.wire.format import CODECS
from cdcavro.wire.formats import get_format
from reference import house
from reference.commands import command_page
from reference.formats import attribute_page, change_page, format_list, format_page, indented
from reference.front import way_picture
from reference.python import described, mentioned, module_page, public_modules
from reference.schema_text import ENGINE_KEYS
from reference.settings import EXAMPLES, PIPELINE, example_config, part_list, sections, settings, settings_page
from reference.sql import sql_page
from reference.tables import table_page
from reference.update import FORMAT, MESSAGE, TABLE, TYPES, messages
from support.messages import ROW_FORMATS, golden_files
from support.places import ROOT
from support.roundtrip import exact

DOCS = ROOT / "docs"
PAGES = DOCS / "reference"
AVSC = ROOT / "avsc"
SPARK = "cdcavro.spark"


def _members(declared) -> set[str]:
    """Give the JSON members of all records in a schema's JSON."""
    if isinstance(declared, list):
        return {name for part in declared for name in _members(part)}
    if not isinstance(declared, dict):
        return set()
    said = declared.get("json", {})
    own = {said.get("name", field["name"]) for field in declared.get("fields", ()) for said in [field.get("json", {})]}
    rest = {
        field["name"] for field in declared.get("fields", ()) if field.get("json", {}).get("members") == "rest"
    }  # a map of members has no name in JSON
    within = [*declared.get("fields", ()), declared.get("type"), declared.get("items"), declared.get("values")]
    return (own - rest) | _members([part for part in within if not isinstance(part, str)]) if said is not None else own


def _options(command: str) -> set[str]:
    said = CliRunner().invoke(main, [command, "--help"], prog_name="cdcavro").output
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", said, re.MULTILINE))


@pytest.fixture(scope="module")
def _spark():
    """Spark, or what stands in for it while the site is built."""
    if importlib.util.find_spec("pyspark") is None:
        mock = pytest.importorskip("sphinx.ext.autodoc.mock", reason="neither Spark nor Sphinx is here").mock
        with mock(["pandas", "py4j", "pyarrow", "pyspark"]):
            for module in public_modules():
                if module.startswith(SPARK):
                    importlib.import_module(module)


def _unnamed(module: str) -> list[str]:
    """Give the public names of a module that its page lacks."""
    page = module_page(module)
    names = [home for name, home in described().items() if name.rpartition(".")[0] == module]
    assert names
    return [
        name for name in names if not re.search(rf"(:: |`){re.escape(name)}(\n|`)", page) and not _is_data(page, name)
    ]


def _is_data(page: str, full_name: str) -> bool:
    module, _, name = full_name.rpartition(".")
    return f".. py:data:: {name}\n   :module: {module}\n" in page


def _generated(title: str, call: str) -> str:
    return f"# {title}\n\n```{{generated}} {call}\n```\n"


@pytest.mark.parametrize("module", public_modules())
def test_every_module_with_public_names_has_a_page(module):
    """The page is generated whole, and listed among those of Python."""
    assert (PAGES / "python" / f"{module}.md").read_text(encoding="utf-8") == _generated(module, f"module {module}")
    assert f"\n{module}\n" in (PAGES / "python" / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", [module for module in public_modules() if not module.startswith(SPARK)])
def test_the_page_of_a_module_names_all_that_is_public_in_it(module):
    """Each name has its entry, or a link to the page of another module that has it as well."""
    assert _unnamed(module) == []


@pytest.mark.usefixtures("_spark")
@pytest.mark.parametrize("module", [module for module in public_modules() if module.startswith(SPARK)])
def test_the_page_of_spark_names_all_that_is_public_in_it(module):
    """The same where Spark is, and where the site is built without it."""
    assert _unnamed(module) == []


def test_the_types_of_results_are_described_although_they_are_not_exported():
    """What `evolve` returns cannot be imported from `cdcavro`, and has an entry all the same."""
    assert mentioned()["cdcavro.table.evolution.evolve.Evolution"] == "cdcavro"
    assert "\n.. autoclass:: cdcavro.table.evolution.evolve.Evolution\n" in module_page("cdcavro")
    assert ":canonical: Literal['topic', 'record', 'topic-record']" in module_page("cdcavro.registry")


def test_there_is_a_page_for_each_format_and_for_nothing_else():
    """A wire schema, a format and a page have one name; the page is generated whole."""
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (PAGES / "formats").glob("*.md")}
    del pages["index"]
    assert pages == {name: _generated(name, f"format {name}") for name in cdcavro.FORMATS}
    assert set(pages) == {path.stem for path in AVSC.glob("*.avsc")} - {"change"}


def test_the_list_of_formats_is_in_the_order_of_precedence():
    """As `sniff` prefers them, each with a link to its page."""
    assert re.findall(r"^\* \[`(\w+)`\]\((\w+)\.md\): a", format_list(), re.MULTILINE) == [
        (name, name) for name in cdcavro.FORMATS
    ]


def test_the_list_of_formats_on_the_front_page_leads_to_their_pages():
    """The same list, made for a page in another folder."""
    (folder,) = re.findall(
        r"^```\{generated\} formats (\S+)$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    linked = re.findall(r"\]\((.+?)\)", format_list(folder))
    assert [(DOCS / page).resolve() for page in linked] == [
        PAGES / "formats" / f"{name}.md" for name in cdcavro.FORMATS
    ]


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_the_update_is_the_same_row_in_every_format(format):
    """What pages show of it: where a format has the rows before and after, they are those of the message."""
    after = {"id": 7, "price": Decimal("1.20"), "note": "paid"}
    shown = messages(format)
    assert [row for message in shown for row in [message.after] if row is not None] == [after]
    before = [message.before for message in shown if message.before is not None]
    assert before in ([{**after, "price": Decimal("1.00"), "note": None}], [])
    for message in shown:
        decoded = cdcavro.decode(message.payload, format)
        if format in CODECS:  # bytes have more members than the text that states what they must have
            assert cdcavro.decode(cdcavro.encode(decoded, format), format) == decoded
        else:
            assert exact(decoded.decode()) == exact(message.text)


def test_the_picture_of_the_way_shows_the_message_its_payload_and_its_row():
    """The beginning of the true payload, the declared types, and words that are names of the package."""
    picture = way_picture()
    payload = cdcavro.encode(MESSAGE, FORMAT)
    assert f"<pre>{MESSAGE}</pre>" in picture
    assert f"Avro: {len(payload)} bytes instead of {len(MESSAGE)}" in picture
    shown = bytes.fromhex(re.search(r"<pre>([0-9a-f \n]+)…</pre>", picture)[1])
    assert payload.startswith(shown)
    assert len(shown) == 96
    for column, declared in TYPES.items():
        assert f"<tr><td>{column}</td><td>{declared}</td><td>" in picture
    words = re.findall(r'class="way-on">(\w+) ', picture)
    assert words == ["encode", "Tables", "sync"]
    assert all(hasattr(cdcavro, word) or word in main.commands for word in words)
    assert json.loads(MESSAGE)["table"] == TABLE


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_the_page_of_a_format_names_every_member_and_every_sample(format):
    """Also those of the records within its record."""
    page = format_page(format)
    members = _members(json.loads((AVSC / f"{format}.avsc").read_text(encoding="utf-8")))
    assert len(members) > 5
    assert [name for name in members if f"| `{name}` |" not in page] == []
    assert [name for name in golden_files(format) if f"`{name}`" not in page and f"`{name}.json`" not in page] == []


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_the_message_on_the_page_of_a_format_has_the_payload_that_stands_below_it(format):
    """The JSON is that of the sample, digit for digit, and the record what fastavro reads."""
    page = format_page(format).partition("\n## A payload\n")[2]
    shown = re.search(r"^The sample `(.+)\.json`", page, re.MULTILINE)[1]
    message = re.search(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1]
    sample = get_format(format).text_of(golden_files(format)[shown]).decode()
    assert re.sub(r"\s", "", message) == re.sub(r"\s", "", sample)
    payload = cdcavro.encode(message, format)
    assert f"Its payload has {len(payload)} bytes" in page
    schema = fastavro.parse_schema(json.loads(cdcavro.load_schema(format).json))
    record = re.search(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1]
    assert eval(record) == fastavro.schemaless_reader(io.BytesIO(payload), schema, None)


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_the_page_of_a_format_begins_with_a_message_and_ends_with_what_is_for_the_engine(format):
    """The update, its changes as `to_changes` gives them, and its typed row; no table of members has a part of a row."""
    page = format_page(format)
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == [
        "A message and what it becomes",
        "Members",
        "How it differs",
        "How it is detected",
        "A payload",
        "The schema",
        "For the engine",
    ]
    update, _, rest = page.partition("\n## Members\n")
    shown = [exact(text) for text in re.findall(r"^```json\n(.*?)^```", update, re.MULTILINE | re.DOTALL)]
    texts = [message.text for message in messages(format)]
    changes = [change for text in texts for change in cdcavro.to_changes(text, format, zone=UTC)]
    assert shown[: len(texts)] == [exact(text) for text in texts]
    assert [(change["op"], int(change["event_time"].text)) for change in shown[len(texts) :]] == [
        (change.op, change.event_time) for change in changes
    ]
    assert "| `price` | `decimal(10,2)` |" in update
    assert "| `1.20` |\n" in update
    members, _, engine = rest.partition("\n## For the engine\n")
    assert not re.search(r"`(part|position|means|unit|ops|tells|necessary)(: |:`|`, |` \|\n)", members)
    stated = _stated_for_the_engine(json.loads((AVSC / f"{format}.avsc").read_text(encoding="utf-8")))
    parts = re.findall(r"^\| `([\w.]+)` \| `\w+[:`]", engine, re.MULTILINE)
    assert sorted(name.rpartition(".")[2] for name in parts) == sorted(stated)
    assert (len(stated) > 0) >= (format in ROW_FORMATS)


def _stated_for_the_engine(schema: Any) -> list[str]:
    """Return the name of each field, once for each thing that its attribute says to converters only."""
    if isinstance(schema, list):
        return [name for part in schema for name in _stated_for_the_engine(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema["name"] for key in ENGINE_KEYS if "type" in schema and key in schema.get("json", {})]
    own = [] if "fields" in schema else own
    return own + [name for part in schema.values() for name in _stated_for_the_engine(part)]


def test_the_page_of_changes_names_every_member():
    """Those of `avsc/change.avsc`."""
    page = change_page()
    members = _members(json.loads((AVSC / "change.avsc").read_text(encoding="utf-8")))
    assert [name for name in members if f"| `{name}` |" not in page] == []


def test_the_page_of_attributes_has_every_key_and_says_what_it_means():
    """A key that the code reads and the tables do not list fails."""
    keys = {name for rule in (FieldRule, FormatRule, EnumRule) for name in rule.__dataclass_fields__} | {"holds"}
    keys -= {"units"}  # a `unit` by operation
    listed = re.findall(r"^\| `(\w+)` \| .+ \| .+ \|$", attribute_page(), re.MULTILINE)
    assert set(listed) == keys


def test_each_part_of_a_configuration_has_a_page_with_every_setting():
    """Each with its type, its default and an example; the names are those that the configuration is read by."""
    folder = DOCS / "reference" / "settings"
    names = [section for section, _ in sections()]
    pages = {name or PIPELINE: (folder / f"{name or PIPELINE}.md").read_text(encoding="utf-8") for name in names}
    assert {f"{name}.md" for name in pages} | {"index.md"} == {path.name for path in folder.iterdir()}
    for section, kind in sections():
        part = section or PIPELINE
        assert f"\n```{{generated}} settings {part}\n```\n" in pages[part]
        assert "Raises" not in settings_page(part)
        own = {setting.name.rpartition(".")[2] for setting in settings(section, kind)}
        assert not any("falses" in setting.type for setting in settings(section, kind))
        assert own == set(kind.__struct_encode_fields__) - (set(names) if section == "" else set())
        listed = re.findall(r"^\| \{setting-entry\}`([\w.]+)` \|", settings_page(part), re.MULTILINE)
        assert listed == [
            f"{section}.{name}".removeprefix(".") for name in kind.__struct_encode_fields__ if name in own
        ]
    assert "| {setting-entry}`lake.guard_days` | number | `7` |" in settings_page("lake")
    assert "| {setting-entry}`state` | text | required |" in settings_page(PIPELINE)
    assert re.findall(r"^\* \[`?\[*(.+?)\]*`?\]\((\w+)\.md\): \{setting\}", part_list(), re.MULTILINE) == [
        (section or "Before all sections", section or PIPELINE) for section in names
    ]


def test_the_examples_of_settings_are_ones_that_a_configuration_takes():
    """They are read as a configuration is, and none of them is the default."""
    config = example_config()
    for section, kind in sections():
        stated = getattr(config, section) if section else config
        # Of several sections the example has one.
        (stated,) = stated if isinstance(stated, list) else (stated,)
        attributes = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
        for setting in settings(section, kind):
            name = attributes[setting.name.rpartition(".")[2]]
            assert f"\n{setting.example}\n" in f"\n{EXAMPLES}"
            assert json.dumps(_plain(msgspec.to_builtins(getattr(stated, name)))) != (setting.default or "null"), (
                setting.name
            )


def _plain(value):
    return value if isinstance(value, str | int | float | list | dict) else str(value)


def test_a_setting_without_a_line_in_its_docstring_is_told():
    """So that a new setting is not missing on the page."""

    class LakeConfig(msgspec.Struct):
        """Where tables go.

        * `delta`: a folder.
        """

        delta: str = ""
        novel: str = ""

    with pytest.raises(LookupError, match=r"^LakeConfig\.novel has no line in the docstring of its class"):
        list(settings("lake", LakeConfig))


@pytest.mark.parametrize("command", main.commands)
def test_the_page_of_commands_has_every_command_with_every_option_and_its_example(command):
    """The options are those that `--help` prints."""
    page = command_page()
    part = page.partition(f"\n## cdcavro {command}\n")[2].partition("\n## ")[0]
    options = _options(command)
    assert "--help" in options
    assert [name for name in options if not re.search(rf"^\.\. option:: (-\w, )?{name}\b", part, re.MULTILINE)] == []
    assert f"\n$ cdcavro {command} " in f"{part} ".replace(f"$ cdcavro {command}\n", f"$ cdcavro {command} \n")
    assert f"| [`cdcavro {command}`](#cdcavro-{command}) |" in page


@pytest.mark.usefixtures("_spark")
def test_the_page_of_sql_functions_has_each_with_its_arguments_and_an_example():
    """They are those of the table by which `register` makes them available."""
    page = sql_page()
    functions = importlib.import_module("cdcavro.spark.sql").SQL_FUNCTIONS
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == list(functions)
    for name, function in functions.items():
        part = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        arguments = ", ".join(inspect.signature(function.convert).parameters)
        assert f"```sql\n{name}({arguments})\n```" in part
        assert function.returns in part
        assert re.search(rf"^```sql\nSELECT .*\b{name}\(.*^```", part, re.MULTILINE | re.DOTALL)


def test_the_page_of_commands_has_the_exit_codes():
    """Those that the group of commands ends with."""
    part = command_page().partition("\n## Exit codes\n")[2].partition("\n## ")[0]
    codes = {REJECTED, UNUSABLE, INTERRUPTED, TERMINATED, PIPE_CLOSED, 0}
    assert set(re.findall(r"`([0-9]+)`", part)) == set(map(str, codes))


def test_the_page_of_typed_tables_shows_a_row_a_key_the_next_version_and_the_envelope():
    """Each schema on it is one that Avro reads."""
    page = table_page()
    blocks = [json.loads(text) for text in re.findall(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)]
    message, row, key, fields, envelope = blocks
    assert cdcavro.sniff(json.dumps(message)) == "oms_canal"
    assert [declared["name"] for declared in (row, key, envelope)] == ["Value", "Key", "Envelope"]
    assert [field["name"] for field in fields] == ["remark", "items"]
    assert fields[0]["aliases"] == ["note"]
    envelope["fields"][0]["type"][1] = row
    for declared in (row, key, envelope):
        cdcavro.parse_schema(json.dumps(declared))


def test_json_set_in_lines_keeps_its_digits_and_spellings():
    """Numbers, escapes and the order of members are as they were; what fits a line stands in one."""
    text = '{"a":[1.20,-0,1E400,"\\u00e9, {}"],"b":{},"c":[[],[{"d":null}]]}'
    lines = indented(text, 20)
    assert lines.startswith('{\n  "a": [\n    1.20,\n    -0,\n    1E400,\n    "\\u00e9, {}"\n  ],\n  "b": {},\n')
    assert json.loads(lines.replace("1E400", "0")) == json.loads(text.replace("1E400", "0"))


@pytest.mark.parametrize("module", ["docstrings", "formats", "schema_text"])
def test_examples_in_the_generators_docstrings_run(module):
    """Each `>>>` gives what stands below it."""
    done = doctest.testmod(importlib.import_module(f"reference.{module}"))
    assert done.attempted
    assert done.failed == 0


def test_the_list_of_modules_has_each_with_the_first_sentence_of_its_docstring():
    """A module without a sentence would be a name only."""
    listed = house.module_list()
    rows = re.findall(r"<tr><td><code>(\w+)</code></td><td>(.*?)</td></tr>", listed)
    found = [path.stem for path in (ROOT / "cdcavro").rglob("*.py") if path.stem not in ("__init__", "__main__")]
    assert sorted(name for name, _ in rows if name != "__main__") == sorted(found)
    assert [name for name, said in rows if not said.endswith(".")] == []
    counts = [int(count) for count in re.findall(r"</code>: (\d+)</summary>", listed)]
    assert sum(counts) == len(rows)


def test_circular_imports_have_no_drawing(monkeypatch):
    """It would have no end otherwise."""
    monkeypatch.setattr(house, "_imports", lambda: {"a": {"b"}, "b": {"a"}, "c": set()})
    with pytest.raises(ValueError, match="in a circle between a, b"):
        house.levels.__wrapped__()
