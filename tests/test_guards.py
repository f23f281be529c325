"""The six rules that the project keeps, each as a test, and the examples in docstrings."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import cdcavro
from cdcavro.cli import main
from cdcavro.formats import BRIDGES
from cdcavro.wire.formats import REGISTRY
from reference import house, sources
from support.messages import SAMPLES, canal
from support.pages import all_pages, blocks, prose
from support.places import README, ROOT, TESTS

PACKAGE = Path(cdcavro.__file__).parent
AVSC = next(folder for folder in (PACKAGE / "avsc", PACKAGE.parent / "avsc") if folder.is_dir())
# What each folder may import besides itself, top to bottom; `cdcavro` is what stands in __init__.py.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "exact": {"errors"},
    "avro": {"errors", "exact"},
    "engine": {"errors", "exact", "avro"},
    "wire": {"errors", "exact", "avro", "engine"},
    "change": {"errors", "exact", "engine", "wire"},
    "formats": {"errors", "exact", "avro", "engine", "wire", "change"},
    "transcoding": {"errors", "exact", "engine", "wire", "change", "formats"},
    "table": {"errors", "exact", "avro", "engine", "wire", "change", "transcoding"},
    "arrow": {"errors", "exact", "avro", "engine", "change", "table"},
    "files": {"errors", "exact", "avro", "wire"},
    "lake": {"errors", "exact", "avro", "engine", "wire", "change", "transcoding", "table", "arrow", "files"},
    "registry": {"errors", "exact", "avro", "engine"},
    "records": {"errors", "exact", "avro", "engine", "wire", "table"},
    "sync": {
        "errors",
        "exact",
        "avro",
        "engine",
        "wire",
        "change",
        "formats",
        "transcoding",
        "table",
        "arrow",
        "lake",
        "files",
        "registry",
    },
    "cdcavro": {"errors", "exact", "avro", "wire", "change", "transcoding", "table"},
}
MAY_IMPORT["spark"] = {*MAY_IMPORT} - {"records"}
MAY_IMPORT["cli"] = {*MAY_IMPORT}
# Where a library may be imported; everything else does without it.
HOMES: dict[str, str | tuple[str, ...]] = {
    "pyspark": "spark/",
    "py4j": "spark/",
    "pyarrow": (
        "arrow/",
        "spark/",
        "sync/",
        "lake/lake_columns.py",
        "lake/placing.py",
        "lake/table_files.py",
        "files/lines.py",
    ),
    "deltalake": "sync/native/",
    "pyiceberg": "sync/native/",
    "click": "cli/",
    "rich": "cli/console.py",
    "sqlglot": "table/ddl/cursor.py",
    "confluent_kafka": ("sync/local/", "sync/reading/"),
    "certifi": "registry/",
    "openlineage": "sync/outputs/telemetry.py",
    "opentelemetry": "sync/outputs/telemetry.py",
    "prometheus_client": "sync/metrics.py",
    "cryptography": "sync/outputs/reject_places.py",
    "httpx2": "registry/",
    "httpx": "nowhere",
    "requests": "nowhere",
    "pandas": "spark/arrow_udf.py",
    "pydantic": "nowhere",
}


SOURCES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def _tree(source: str) -> ast.Module:
    """Parse a module of the package, whose path within it is given."""
    return sources.tree(_module(source))


@cache
def _nodes(tree: ast.Module) -> list[ast.AST]:
    """Return all nodes of a module, which most rules look at."""
    return [*ast.walk(tree)]


def _offenders(offences: Callable[[str], Any]) -> dict[str, Any]:
    """Return the modules that break a rule, each with how; all are looked at in one test, which costs less than one each."""
    return {source: found for source in SOURCES if (found := offences(source))}


def _folder(source: str) -> str:
    first = source.split("/", maxsplit=1)[0].removesuffix(".py")
    return {"__init__": "cdcavro", "__main__": "cli"}.get(first, first)


def _imported(tree: ast.Module) -> list[str]:
    """Return the dotted names of all that a module imports, within functions and for type checkers too."""
    names = []
    for node in _nodes(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"a relative import in line {node.lineno}"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def _imported_folders(tree: ast.Module) -> set[str]:
    within = [name.split(".") for name in _imported(tree) if name.split(".")[0] == "cdcavro"]
    return {parts[1] if len(parts) > 1 and parts[1] in MAY_IMPORT else "cdcavro" for parts in within}


def _module(source: str) -> str:
    return ".".join(("cdcavro", *source.removesuffix(".py").split("/"))).removesuffix(".__init__")


MODULES = {_module(source): source for source in SOURCES}


def _imported_when_run(node: ast.AST) -> set[str]:
    """Find the modules of the package that a module imports, within functions too, but not for type checkers only."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return set().union(*map(_imported_when_run, node.orelse))
        case ast.Import() | ast.ImportFrom():
            names = _imported(ast.Module([node], []))
            return {name if name in MODULES else name.rpartition(".")[0] for name in names} & set(MODULES)
    return set().union(*map(_imported_when_run, ast.iter_child_nodes(node)))


# 1. One name for a format, everywhere.


def _stems(folder: Path, pattern: str) -> set[str]:
    return {path.stem for path in folder.glob(pattern)}


def _formats_of_readme() -> list[str]:
    return re.findall(
        r"^\| `([a-z0-9_]+)` \|",
        README.read_text(encoding="utf-8").split("## Formats\n")[1].split("\n## ")[0],
        re.MULTILINE,
    )


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(lambda: _stems(AVSC, "*.avsc") - {"change"}, id="avsc"),
        pytest.param(
            lambda: (
                _stems(PACKAGE / "formats", "*.py")
                - {
                    "__init__",
                    "bridge",
                    "connect_avro",
                    "connect_columns",
                    "connect_messages",
                    "canal_codec",
                    "dts_codec",
                }
            ),
            id="module",
        ),
        pytest.param(lambda: {path.name for path in SAMPLES.iterdir() if any(path.glob("*.json"))}, id="samples"),
        pytest.param(lambda: {path.name for path in SAMPLES.iterdir()}, id="no other samples"),
        pytest.param(lambda: set(_formats_of_readme()), id="README"),
        pytest.param(lambda: {format.name for format in REGISTRY.values()}, id="constant"),
        pytest.param(
            lambda: {stem.removeprefix("test_") for stem in _stems(TESTS / "formats", "test_*.py")} & set(REGISTRY),
            id="test",
        ),
    ],
)
def test_format_has_one_name(found):
    """Schema, module, constant, samples, tests and README name the same formats."""
    assert found() == set(cdcavro.FORMATS)


def test_no_wire_schema_has_what_quotes_of_sql_would_trip_over():
    """So that it can stand in a call of `from_avro` as it is printed: no apostrophe, and no backslash."""
    schemas = {format: cdcavro.load_schema(format).json for format in cdcavro.FORMATS}
    assert [format for format, text in schemas.items() if any(char in text for char in "'\\")] == []


def test_readme_lists_formats_in_the_order_of_precedence():
    """README says that the first in its table is taken among equals."""
    assert tuple(_formats_of_readme()) == cdcavro.FORMATS


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_module_of_a_format_is_a_list_of_differences(format):
    """Its docstring names the schema and its source and lists what is particular; it ends in its BRIDGE."""
    module = importlib.import_module(f"cdcavro.formats.{format}")
    assert f"avsc/{format}.avsc" in module.__doc__
    assert "\nSource: " in module.__doc__
    assert module.__doc__.count("\n* ") >= 2
    assert format == module.FORMAT
    assert module.BRIDGE is BRIDGES[format]


# What may name formats, besides their own folder: the list of them, how each declares column types, and
# records of DataHub's SDK, which are messages of one format, so that errors say so.
NAMES_FORMATS = ("formats/", "wire/formats.py", "table/columns/format_rules.py", "wire/pydatahub.py")


def _docstrings(tree: ast.Module) -> set[ast.AST]:
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return {
        node.body[0].value
        for node in _nodes(tree)
        if isinstance(node, owners) and node.body and isinstance(node.body[0], ast.Expr)
    }


def _formats_known_to(source: str) -> set[str]:
    """Return the names of formats in a module's strings, and what it imports of their modules."""
    tree = _tree(source)
    texts = {node for node in _nodes(tree) if isinstance(node, ast.Constant)} - _docstrings(tree)
    modules = tuple(f"cdcavro.formats.{name}" for name in REGISTRY)
    return {node.value for node in texts if isinstance(node.value, str)} & set(REGISTRY) | {
        name for name in _imported(tree) if name.startswith(modules)
    }


def test_only_formats_know_formats():
    """What a format is, its schema says: no other module has its name in a string, or imports its module."""
    assert _offenders(lambda source: not source.startswith(NAMES_FORMATS) and _formats_known_to(source)) == {}
    assert all(_formats_known_to(f"formats/{format}.py") for format in cdcavro.FORMATS)


# 2. Imports go one way.


# What has more names than a dozen and a few on purpose: the layers, and in `avro` types, schemas, three ways of reading,
# and files.
MOST_NAMES = {"": 17, "avro": 18, "formats": len(cdcavro.FORMATS) + 6}


def test_a_folder_has_about_a_dozen_names():
    """A reader sees at a glance what there is; a module and its compiled twin have one name."""
    folders: dict[str, set[str]] = {}
    for source in SOURCES:
        *above, name = source.removesuffix(".py").split("/")
        for i, folder in enumerate(above):
            folders.setdefault("/".join(above[:i]), set()).add(folder)
        folders.setdefault("/".join(above), set()).add(name)
    counts = {folder: len(names - {"__init__", "__main__"}) for folder, names in folders.items()}
    assert {folder: count for folder, count in counts.items() if count > MOST_NAMES.get(folder, 16)} == {}


def test_no_imports_go_in_a_circle():
    """Within a folder neither: each module can be understood after those that it imports."""
    imports = {module: _imported_when_run(_tree(source)) - {module} for module, source in MODULES.items()}
    while free := {module for module, needed in imports.items() if not needed}:
        imports = {module: needed - free for module, needed in imports.items() if module not in free}
    assert imports == {}


def test_every_folder_has_its_place():
    """A new folder is put into the table before it is used."""
    assert {_folder(source) for source in SOURCES} == set(MAY_IMPORT)


def test_the_page_on_architecture_shows_this_table():
    """Who wants to know what may be imported where need not read a test."""
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (nothing|`.*`) \|$", page.partition("may import whom")[2], re.MULTILINE)
    assert {folder: set(re.findall(r"\w+", others)) - {"nothing"} for folder, others in rows} == {
        folder: others - {folder} for folder, others in MAY_IMPORT.items()
    }


def test_the_drawing_of_the_house_has_every_folder_above_all_that_it_imports():
    """The page on architecture shows it, made of the code's text; what is imported is seen in its syntax here."""
    rows = house.house_picture().split("<li>")[1:]
    heights = {
        folder: -row for row, text in enumerate(rows) for folder in re.findall(r">?<code>(\w+)</code> <small>", text)
    }
    assert set(heights) == set(MAY_IMPORT) - {"cdcavro"}
    needed: dict[str, set[str]] = {}
    for source in SOURCES:
        if source != "__init__.py":
            needed.setdefault(_folder(source), set()).update(_imported_folders(_tree(source)) - {"cdcavro"})
    for folder, others in needed.items():
        assert all(heights[other] < heights[folder] for other in others - {folder}), folder
        lower = {heights[other] for other in others - {folder}}
        assert not lower or max(lower) == heights[folder] - 1, folder


def test_modules_import_only_what_their_folder_may():
    """No layer knows those that are built on it."""

    def strays(source: str) -> set[str]:
        own = _folder(source)
        return _imported_folders(_tree(source)) - {own} - MAY_IMPORT[own]

    assert _offenders(strays) == {}


def test_libraries_are_imported_only_in_their_home():
    """Spark, Arrow and what the command line needs stay where they belong."""

    def strays(source: str) -> list[str]:
        found = _imported(_tree(source))
        return [name for name in found if not source.startswith(HOMES.get(name.split(".")[0], source))]

    assert _offenders(strays) == {}


# What needs the JVM of a session, which Spark Connect does not have: `classic` says so there.
NEEDS_JVM = {
    "session.py": "it looks for the jar and the bounds in a session that runs already",
    "job.py": "the main job, which replaces folders by Hadoop",
    "source/line_frame.py": "the main job, which reads the heads of files by Hadoop",
    "lake/sinks.py": "Delta Lake's log is looked at by Hadoop, and Iceberg's snapshots have no Python interface",
    "lake/spark_tables.py": "a pipeline's own rows go to as many tasks as they have parts",
    "pipeline/outcome_frames.py": "a pipeline asks all machines whether they share its folders",
    "pipeline/record_sinks.py": "a pipeline creates topics by Kafka's client for Java",
    "pipeline/runner.py": "Spark's log of streams is silenced by Log4j",
    "pipeline/pipeline_rejects.py": "a pipeline matches topics by a pattern of Java",
}
OF_THE_JVM = {"_jvm", "_jdf", "_jsc", "_jc", "_jsparkSession", "sparkContext", "rdd"}


def _uses_of_the_jvm(source: str) -> set[str]:
    attributes = {node.attr for node in _nodes(_tree(source)) if isinstance(node, ast.Attribute)}
    return attributes & OF_THE_JVM if source.startswith("spark/") else set()


def test_spark_connect_has_all_but_what_is_listed():
    """No other module asks a session for its JVM, and each that is listed does."""
    assert set(_offenders(_uses_of_the_jvm)) == {f"spark/{source}" for source in NEEDS_JVM}


@pytest.mark.parametrize(
    ("module", "libraries"),
    [
        ("cdcavro", set(HOMES)),
        ("cdcavro.cli", {"pyspark", "py4j", "pyarrow", "pandas", "rich", "httpx2"}),
        ("cdcavro.registry", {"click", "httpx2"}),
        ("cdcavro.arrow", {"click", "pyspark", "pandas"}),
    ],
)
def test_import_is_light(module, libraries):
    """The names of `cdcavro` need neither Spark nor the command line, and a command's help no Spark."""
    code = f"import sys, {module}; from cdcavro import *; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert libraries & {name.split(".")[0] for name in done.stdout.split()} == set()


_WITHOUT_SPARK = """
import importlib, pkgutil, sys
class Refusal:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("pyspark", "py4j"):
            raise ImportError(f"{name} is not to be imported")
sys.meta_path.insert(0, Refusal())
import cdcavro.sync
def fail(name): raise
found = [one.name for one in pkgutil.walk_packages(cdcavro.sync.__path__, "cdcavro.sync.", onerror=fail)]
for name in found:
    importlib.import_module(name)
print(*found)
"""


def test_nothing_of_a_pipeline_that_any_runner_runs_imports_spark():
    """Every module below `cdcavro.sync` is imported where pyspark and py4j cannot be."""
    done = subprocess.run([sys.executable, "-c", _WITHOUT_SPARK], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    modules = {name for name, source in MODULES.items() if source.startswith("sync/")}
    assert {"cdcavro.sync", *done.stdout.split()} == modules


@pytest.mark.slow
def test_a_local_run_imports_no_spark(tmp_path):
    """`cdcavro sync --local` runs to its end where pyspark and py4j cannot be imported, also on the way to a table."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_bytes(canal("INSERT", [{"id": "1"}], id=1) + b"\n")
    refusal = _WITHOUT_SPARK.partition("import cdcavro.sync\n")[0]
    words = ["sync", "--local", "--once", "--files", "in", "--format", "canal", "--delta", "lake", "--state", "state"]
    code = f"{refusal}from cdcavro.cli import main\nmain({words})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "read 1 = written 1 + rejected 0"), done.stderr
    assert (tmp_path / "lake" / "d" / "t" / "_delta_log").is_dir()


def test_numpy_is_not_needed():
    """No extra installs it, and `pyarrow` does without it but for this."""
    assert _offenders(lambda source: "to_numpy(" in (PACKAGE / source).read_text(encoding="utf-8")) == {}


# 3. What is public is written down.


def _literal_all(source: str) -> list[str]:
    for node in _tree(source).body:
        if isinstance(node, ast.Assign) and [target.id for target in node.targets if isinstance(target, ast.Name)] == [
            "__all__"
        ]:
            return ast.literal_eval(node.value)
    raise AssertionError(f"{source} has no literal __all__")


def _code_of(page: Path) -> list[str]:
    """Give what a page shows as code: its blocks, and what stands between backticks."""
    return [*(block.text for block in blocks(page)), *re.findall(r"`[^`\n]+`", prose(page))]


def _rank(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions: the order in which ruff keeps `__all__`."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


@pytest.mark.parametrize(
    ("source", "most"),
    [("__init__.py", 40), ("arrow/__init__.py", 5), ("registry/__init__.py", 15), ("spark/__init__.py", 16)],
)
def test_all_is_literal_sorted_and_small(source, most):
    """`__all__` can be read without running anything."""
    names = _literal_all(source)
    assert names == sorted(names, key=_rank)
    assert len(set(names)) == len(names) <= most


def test_all_is_exactly_what_is_importable():
    """Whatever is public in the package is in `__all__`, modules aside, also what is imported when asked for."""
    assert all(hasattr(cdcavro, name) for name in cdcavro.__all__)
    public = {
        name
        for name, value in vars(cdcavro).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert public == set(cdcavro.__all__) == set(_literal_all("__init__.py"))
    (stated,) = (node for node in _tree("__init__.py").body if isinstance(node, ast.If))
    typed = {node.module: {one.name for one in node.names} for node in stated.body if isinstance(node, ast.ImportFrom)}
    assert typed == {home: set(names) for home, names in cdcavro._HOMES.items()}


@pytest.mark.parametrize("source", ["arrow/__init__.py", "registry/__init__.py", "spark/__init__.py"])
def test_all_of_a_package_is_exactly_what_it_imports(source):
    """The same for `cdcavro.registry`, and for `cdcavro.spark` without importing pyspark."""
    imported = {
        alias.asname or alias.name
        for node in _tree(source).body
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
    }
    defined = {node.name for node in _tree(source).body if isinstance(node, ast.FunctionDef)}
    assert {name for name in imported | defined if not name.startswith("_")} == set(_literal_all(source))


# 4. What there is is in the pages and has help.

FACES = ["__init__.py", *(f"{face}/__init__.py" for face in (
    "arrow", "avro", "change", "lake", "records", "registry", "spark", "spark/lake", "spark/pipeline", "sync/local", "table", "transcoding", "wire",
)), "records/codegen.py"]  # fmt: skip


def test_names_are_in_a_page():
    """Every public name and every format is mentioned in README or in `docs`, as code."""
    names = {name for face in FACES for name in _literal_all(face)} | {*cdcavro.FORMATS}
    mentioned = set(re.findall(r"\w+", " ".join(code for page in all_pages() for code in _code_of(page))))
    assert names - mentioned == set()


@pytest.mark.parametrize("command", main.commands)
def test_command_is_in_a_page_and_has_help_with_an_example(command):
    """A command that no page shows, or that does not show itself, fails."""
    assert any(f"cdcavro {command}" in page.read_text(encoding="utf-8") for page in all_pages())
    done = CliRunner().invoke(main, [command, "--help"], prog_name="cdcavro")
    assert done.exit_code == 0
    assert main.commands[command].help
    assert re.search(rf"^ *Example:\n +cdcavro {command}\b", done.output, re.MULTILINE)


# 5. What is tested is what is shipped.


@pytest.mark.skipif("TOX_ENV_NAME" not in os.environ, reason="only tox installs the wheel")
def test_tests_import_the_built_wheel():
    """Under tox the package comes from site-packages, not from the checkout."""
    assert PACKAGE.parent.name == "site-packages"
    assert TESTS.parent / "cdcavro" != PACKAGE


def test_checkout_works_without_installation():
    """A clone on the path is enough: the schemas are found beside the package."""
    path = [str(TESTS.parent), *(one for one in sys.path if one.endswith("site-packages"))]
    # Without `site`, no editable installation stands in.
    code = f'import sys; sys.path[:0] = {path!r}; import cdcavro; print(cdcavro.__file__, cdcavro.sniff(\'{{"meta":{{"op":"ins"}}}}\'))'
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == [str(TESTS.parent / "cdcavro" / "__init__.py"), "oms_shareplex"]


# 6. Nothing is guessed, nothing dropped.


def _ends_in_raise(match: ast.Match, after: list[ast.stmt]) -> bool:
    last = match.cases[-1]
    wildcard = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
    return isinstance(last.body[0], ast.Raise) if wildcard else bool(after) and isinstance(after[0], ast.Raise)


def _open_ended(source: str) -> list[int]:
    found = []
    for node in _nodes(_tree(source)):
        for body in (getattr(node, part, None) for part in ("body", "orelse", "finalbody")):
            for i, statement in enumerate(body if isinstance(body, list) else []):
                if isinstance(statement, ast.Match) and not _ends_in_raise(statement, body[i + 1 :]):
                    found.append(statement.lineno)
    return found


def test_last_branch_of_a_dispatch_raises():
    """What no case of a `match` takes is an error: the last case, or the statement right behind it, raises."""
    assert _offenders(_open_ended) == {}


def _modules() -> list[str]:
    found = pkgutil.walk_packages([str(PACKAGE)], "cdcavro.", onerror=lambda _: None)
    return ["cdcavro", *(one.name for one in found if not one.name.startswith(("cdcavro.spark", "cdcavro.avsc")))]


def test_an_exception_to_a_rule_of_security_says_why():
    """Ruff's rules of that kind hold everywhere else."""
    lines = [line for path in PACKAGE.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    exceptions = [line for line in lines if re.search(r"# noqa: [A-Z0-9, ]*\bS\d{3}", line)]
    assert exceptions
    assert [line for line in exceptions if not re.search(r"\bS\d{3}  \w", line)] == []


def test_examples_in_docstrings_run():
    """Each `>>>` gives what stands below it."""
    modules = {name: importlib.import_module(name) for name in _modules()}
    # To look for examples where no source has one takes long.
    shown = [name for name in modules if name not in MODULES or ">>>" in sources.text(name)]
    results = {name: doctest.testmod(modules[name]) for name in shown}
    assert sum(result.attempted for result in results.values()) > 250
    assert {module: result for module, result in results.items() if result.failed} == {}


def test_there_are_examples_in_docstrings():
    """The functions that most users need show how they are used."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for function in (cdcavro.encode, cdcavro.decode, cdcavro.sniff, cdcavro.load_schema, cdcavro.parse_schema):
        assert any(test.examples for test in finder.find(function)), function.__name__
