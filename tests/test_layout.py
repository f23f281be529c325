"""The tests' layout is that of the package: a module's tests stand where its name says, or it is said which tests cover it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import cdcavro
from reference import sources
from support.places import ROOT, TESTS

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(cdcavro.__file__).parent
MODULES = sorted(
    path.relative_to(PACKAGE).with_suffix("").as_posix() for path in PACKAGE.rglob("*.py") if path.stem != "__init__"
)
FOLDERS = {module.partition("/")[0] for module in MODULES} - {"errors"}
TEST_MODULES = sorted(
    path.relative_to(TESTS).with_suffix("").as_posix()
    for path in TESTS.rglob("test_*.py")
    if path.relative_to(TESTS).parts[0] in FOLDERS
)
# Where each environment that has tests of them has pyspark, too.
NEED_SPARK = {"spark", "services"}
# Tests in the folder of a layer that are about more than one module of it, or need no Spark where a module's others do.
ACROSS = {
    "spark/test_survey",
    "transcoding/test_losses",
    "transcoding/test_schema_history",
    "spark/test_typed_batch",
    "spark/test_jvm_output",
    "spark/pipeline/test_driver_writes",
    "sync/local/test_local_kills",
    "sync/local/test_local_oracle",
    "sync/local/test_maintenance",
    "arrow/test_readers",
    "engine/test_change_rows",
    "engine/test_enums",
    "engine/test_row_columns",
    "engine/test_row_lines",
    "engine/test_row_rules",
    "engine/test_values",
    "spark/lake/test_native_iceberg",
    "cli/commands/test_local_commands",
    "spark/lake/test_alternating_runners",
    "spark/pipeline/test_cluster",
    "spark/pipeline/test_pipeline",
    "spark/pipeline/test_sync",
    "spark/pipeline/test_handover",
    "spark/pipeline/test_handover_tables",
    "spark/pipeline/test_shards",
    "spark/pipeline/test_kafka",
    "spark/pipeline/test_kills",
    "spark/pipeline/test_tutorial",
    "spark/pipeline/test_twins",
    "spark/pipeline/test_other_runner",
    "spark/source/test_facts",
    "spark/source/test_offsets",
    "spark/source/test_pipelines",
    "transcoding/test_kafka",
    "spark/source/test_stream",
    "spark/test_avro_java",
    "spark/test_codegen",
    "spark/test_connect",
    "spark/test_messages_to_tables",
    "spark/test_pages",
    "spark/test_readers",
    "spark/test_roundtrip",
    "spark/test_verdict",
    "sync/outputs/test_lake_owners",
    "sync/native/test_hive_catalog",
    "sync/native/test_postgresql_catalog",
    "table/writing/test_change_typer",
    "spark/lake/test_native_delta",
    "spark/lake/test_ownership",
    "spark/lake/test_shapes",
}
# Tests of a part of a module, which has others of its own name.
PARTS = {
    "arrow/test_parquet",
    "avro/test_definitions",
    "avro/test_skip",
    "change/test_clock",
    "change/test_halves",
    "engine/test_arrow_column",
    "exact/test_character_sets",
    "exact/test_jsonvalues",
    "files/test_inputs",
    "spark/pipeline/test_avro_files",
    "spark/pipeline/test_kafka_topics",
    "sync/outputs/test_lineage",
    "table/evolution/test_column_defaults",
    "files/test_threads",
    "spark/lake/test_changelog",
    "spark/pipeline/test_query_metrics",
    "spark/test_framed_rows",
    "sync/conversion/test_lane_times",
    "sync/outputs/test_connect_payloads",
    "sync/outputs/test_reject_cipher",
    "sync/reading/test_file_pattern",
    "sync/reading/test_kafka_options",
    "sync/reading/test_line_reader",
    "table/ddl/test_contents",
    "table/test_stated_keys",
}
# Modules without tests of their own name, and the tests that cover them.
COVERED_BY = {
    "cli/batch_lines": "cli/commands/test_local_commands",
    "sync/sections": "sync/test_config",
    "records/avro_form": "records/test_codec",
    "records/python_values": "records/test_codec",
    "records/python_source": "records/test_codegen",
    "__main__": "cli/test_group",
    "engine/program": "wire/test_message_program",
    "engine/column_program": "arrow/test_record_batches",
    "arrow/arrays": "arrow/test_record_batches",
    "arrow/layout": "arrow/test_record_batches",
    "avro/defaults": "avro/test_schema",
    "change/connect_codecs": "change/test_connect_values",
    "cli/console": "cli/test_group",
    "cli/commands/formats": "cli/test_group",
    "cli/commands/run": "cli/test_group",
    "cli/schema_sources": "cli/commands/test_schemas",
    "cli/spark_session": "cli/test_group",
    "spark/pipeline/record_sinks": "spark/pipeline/test_kafka_topics",
    "cli/options": "cli/commands/test_transcode",
    "exact/caching": "table/writing/test_table_writer",
    "exact/locks": "test_sharing",
    "files/rejects": "cli/commands/test_encode",
    "files/streams": "cli/test_group",
    "formats/bridge": "test_guards",
    "formats/canal_codec": "formats/test_canal_protobuf",
    "formats/dts_codec": "formats/test_dts_avro",
    "lake/lakes": "spark/lake/test_sinks",
    "sync/native/native_columns": "sync/native/test_native_state",
    "sync/native/row_images": "sync/native/test_native_state",
    "lake/markup": "lake/test_report_page",
    "records/shapes": "records/test_codec",
    "registry/backend": "registry/test_folder_backend",
    "spark/sql": "spark/test_functions",
    "sync/conversion/outcome_rows": "sync/conversion/test_task",
    "sync/native/iceberg_files": "sync/native/test_iceberg_lake",
    "sync/native/delta_files": "spark/lake/test_native_delta",
    "sync/native/delta_log": "sync/native/test_delta_lake",
    "sync/outputs/avro_folder": "sync/local/test_local_sinks",
    "sync/reading/kafka_client": "sync/reading/test_kafka_source",
    "sync/reading/message_columns": "sync/reading/test_line_reader",
    "sync/secrets": "sync/test_config",
    "table/catalog": "table/test_tables",
    "table/columns/format_rules": "table/columns/test_readers",
    "table/columns/times": "table/columns/test_readers",
    "table/columns/type_names": "table/columns/test_column_type",
    "table/ddl/table_statements": "table/ddl/test_parse",
    "table/ddl/column_definition": "table/ddl/test_parse",
    "table/ddl/cursor": "table/ddl/test_parse",
    "table/ddl/steps": "table/ddl/test_parse",
    "table/evolution/actions": "table/evolution/test_evolve",
    "table/evolution/explanation": "table/test_statement_follower",
    "table/table_folder": "cli/commands/test_tables",
    "table/history": "table/test_tables",
    "wire/formats": "test_guards",
    "wire/message_reader": "wire/test_value_readers",
    "wire/message_writer": "test_bad_input",
}
# How many modules there are at most, compiled ones and those of packages among them: a new one takes the place of another.
MOST_MODULES = 260
MOST_LINES, MOST_LINES_OF_A_FUNCTION, WIDTH = 600, 40, 120


def _module_of(test: str) -> str:
    return test.replace("test_", "")


def _own_test(module: str) -> str:
    folder, _, name = module.rpartition("/")
    return f"{folder}/test_{name}".lstrip("/")


def test_every_test_module_is_that_of_a_module():
    """A test in a layer's folder is about the module of its name, unless it is said to be about several, or a part."""
    assert {test for test in TEST_MODULES if _module_of(test) not in MODULES} == ACROSS | PARTS


def test_every_module_has_tests():
    """Either tests of its name, or a line in COVERED_BY, but not both."""
    named = {*TEST_MODULES, "test_errors"}
    own = {module for module in MODULES if _own_test(module) in named}
    assert set(MODULES) - own == set(COVERED_BY)


def test_tests_that_cover_a_module_are_there():
    """A line in COVERED_BY names tests that there are."""
    assert [test for test in COVERED_BY.values() if not (TESTS / f"{test}.py").is_file()] == []


def test_no_two_folders_have_a_module_of_one_name():
    """One word, one module: whoever reads a name knows which module is meant. A command is called what it runs."""
    folders: dict[str, set[str]] = {}
    for module in MODULES:
        folder, _, name = module.rpartition("/")
        if not folder.startswith("cli/commands"):
            folders.setdefault(name, set()).add(folder)
    assert {name: found for name, found in folders.items() if len(found) > 1} == {}


def test_there_are_few_modules():
    """What only one other module imports, and nobody would open alone, is a part of that one."""
    modules = [path for ending in ("py", "pyx") for path in PACKAGE.rglob(f"*.{ending}")]
    assert len(MODULES) < len(modules) <= MOST_MODULES


def test_tests_of_what_needs_no_spark_are_found_without_it():
    """They import it in their functions: where there is no pyspark, all else of their file runs."""
    tests = [path for path in TESTS.rglob("test_*.py") if path.relative_to(TESTS).parts[0] not in NEED_SPARK]
    assert tests
    needed = re.compile(r"^(?:from|import) (?:cdcavro\.spark|pyspark)\b", re.MULTILINE)
    assert [path.name for path in tests if needed.search(path.read_text(encoding="utf-8"))] == []


def test_modules_and_functions_are_short():
    """A module has at most 600 lines, a function at most 40."""
    texts = {module: (PACKAGE / f"{module}.py").read_text(encoding="utf-8") for module in MODULES}
    assert [module for module, text in texts.items() if text.count("\n") > MOST_LINES] == []
    functions = {
        f"{module}: {node.name}": _lines(node)
        for module in MODULES
        for node in ast.walk(sources.tree(f"cdcavro.{module.replace('/', '.')}"))
        if isinstance(node, ast.FunctionDef)
    }
    assert functions
    assert {name: lines for name, lines in functions.items() if lines > MOST_LINES_OF_A_FUNCTION} == {}


def test_machine_includes_every_part_of_the_engine_once():
    """What is compiled into the engine is one module, in the order in which its parts are read."""
    included = re.findall(
        r'^include "(.*)"$', (ROOT / "cdcavro/engine/machine.pyx").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(included) == sorted(path.name for path in (ROOT / "cdcavro/engine").glob("*.pxi"))


@pytest.mark.parametrize("part", sorted(path.name for path in (ROOT / "cdcavro/engine").glob("*.p[xy][xi]")))
def test_functions_of_the_engine_are_short(part):
    """A part of the engine is as long as its subject; its functions and lines have the limits of all others."""
    lines = (ROOT / "cdcavro/engine" / part).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []
    lengths = dict(_lengths(lines))
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION} == {}


_BEGIN: Final = re.compile(r"( *)(?:cdef(?! class)|def) [^=:]*?(\w+)\(")


def _lengths(lines: list[str]) -> Iterator[tuple[str, int]]:
    """Yield the functions of Cython code, and how many lines each has without its docstring."""
    for number, line in enumerate(lines):
        if begin := _BEGIN.match(line):
            rest = lines[number + 1 :]
            ended = (i for i, later in enumerate(rest) if re.match(rf" {{0,{len(begin[1])}}}[^ )]", later))
            text = "\n".join(rest[: next(ended, len(rest))])
            yield begin[2], 1 + re.sub(r'""".*?"""\n?', "", text, count=1, flags=re.DOTALL).rstrip().count("\n") + 1


def _lines(function: ast.FunctionDef) -> int:
    """Return how many lines a function has, without its docstring."""
    docstring = function.body[0] if ast.get_docstring(function) else None
    said = 0 if docstring is None else (docstring.end_lineno or 0) - docstring.lineno + 1
    return (function.end_lineno or 0) - function.lineno + 1 - said
