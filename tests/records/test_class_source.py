"""Texts of a schema never become code: a canary that must not run stands wherever a schema has text."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.avro.schema import parse_schema
from cdcavro.errors import SchemaError
from cdcavro.records.codegen import KINDS, NamedSchema, generate
from support.generated_modules import RECORD_KINDS, load
from support.hostile_schemas import PAYLOADS, hostile, schemas
from support.wire import enum, field, record

NODES = (
    ast.Module, ast.Expr, ast.Constant, ast.Import, ast.ImportFrom, ast.alias, ast.ClassDef, ast.AnnAssign, ast.Assign,
    ast.Name, ast.Load, ast.Store, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Dict, ast.BinOp, ast.BitOr,
    ast.Call, ast.keyword, ast.Lambda, ast.arguments, ast.UnaryOp, ast.USub, ast.Pow,
)  # fmt: skip
CALLED = {
    "dataclass", "field", "Field", "ConfigDict", "Codec", "Decimal", "CODEC.default", "dt.date", "StructType",
    "StructField", "ArrayType", "MapType", "DecimalType", "StringType", "LongType", "IntegerType", "BinaryType",
    "BooleanType", "DoubleType", "FloatType", "DateType", "TimestampType", "TimestampNTZType", "NullType",
}  # fmt: skip


def assert_harmless(source: str) -> ast.Module:
    """There are no other nodes than those of declarations, and nothing is called but what makes them."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        assert isinstance(node, NODES), ast.dump(node)
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) in CALLED
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            assert ast.unparse(node).partition("import")[0].split()[-1:] in (
                [], ["dataclasses"], ["decimal"], ["enum"], ["typing"], ["cdcavro.records"], ["msgspec"], ["pydantic"],
                ["pyspark.sql.types"],
            )  # fmt: skip
        if isinstance(node, (ast.Name, ast.Attribute)):
            assert not ast.unparse(node).rpartition(".")[2].startswith("__") or ast.unparse(node) == "__slots__"
    return tree


def docs(made: object, tree: ast.Module) -> set[str]:
    """Return the docstring of a class as it is written, which Python 3.13 keeps without indentation, and as it is read."""
    node = next(one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == made.__name__)
    written = ast.get_docstring(node, clean=False)
    assert inspect.getdoc(made) == inspect.cleandoc(written)
    return {written, inspect.cleandoc(written)}


def attribute_docs(tree: ast.Module, cls: str) -> list[str]:
    """Return the texts that stand below the fields of a class, as they are read."""
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == cls)
    return [node.value.value for node in found.body[1:] if isinstance(node, ast.Expr)]


@pytest.mark.parametrize("kind", RECORD_KINDS)
@pytest.mark.parametrize("text", PAYLOADS)
@pytest.mark.slow
def test_texts_never_run_and_come_back(tmp_path, monkeypatch, text, kind):
    """In docs, defaults, attributes, true names of tables and columns, and the name of the file."""
    monkeypatch.chdir(tmp_path)
    declared = hostile(text)
    source = generate([NamedSchema(text, parse_schema(json.dumps(declared)))], kind)
    tree = assert_harmless(source)
    made = load(source)
    assert json.loads(made.SCHEMA) == declared
    if "\ud800" not in text:
        assert text in docs(made.F, tree)
        assert text in docs(made.E, tree)
        assert any(text in doc for doc in docs(made.Inner, tree))
        # A doc with lines behind it stands on one line if it would not come back else.
        assert any(text in doc or text in inspect.cleandoc(doc) for doc in attribute_docs(tree, "R"))
        first = made.R.from_json('{"decimal":"","union":null}')
        assert (first.string, first.long, first.map, first.array) == (text, text * 20, {text: text}, [text, text])
        assert first.inner == made.Inner(text=text)
        assert made.R.from_avro(first.to_avro()) == first
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("text", PAYLOADS)
def test_texts_never_run_in_what_is_for_spark(tmp_path, monkeypatch, text):
    """There are only names in it."""
    monkeypatch.chdir(tmp_path)
    source = generate([NamedSchema(text, parse_schema(json.dumps(hostile(text))))], "spark")
    assert_harmless(source)
    compile(source, "spark.py", "exec", dont_inherit=True)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("place", ["name", "namespace", "alias", "field", "symbol"])
@pytest.mark.parametrize("text", [one for one in PAYLOADS if one != "日本"])
def test_names_that_are_none_are_refused(text, place):
    """By the parser, before anything is generated."""
    declared = record(field("a", enum("A")))
    match place:
        case "name":
            declared["name"] = text
        case "namespace":
            declared["namespace"] = text
        case "alias":
            declared["aliases"] = [text]
        case "field":
            declared["fields"][0]["name"] = text
        case _:
            declared["fields"][0]["type"]["symbols"] = [text]
    with pytest.raises(SchemaError):
        parse_schema(json.dumps(declared))


def code_lines(source: str, tree: ast.Module) -> list[str]:
    """Return the lines that hold neither docstrings nor comments."""
    docs = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    return [line for i, line in enumerate(source.split("\n"), start=1) if i not in docs]


@pytest.mark.parametrize("kind", KINDS)
@given(declared=schemas(), source=st.text(min_size=1, max_size=9))
@pytest.mark.slow
def test_random_names_and_texts_give_declarations_only(kind, declared, source):
    """Whatever they are; and what they were can be read in the module."""
    made = generate([NamedSchema(source, parse_schema(json.dumps(declared)))], kind)
    tree = assert_harmless(made)
    assert max(map(len, code_lines(made, tree))) <= 120
    if kind == "dataclass":
        loaded = load(made)
        assert json.loads(loaded.SCHEMA) == declared
        cls = loaded.CODEC._listed[-1]
        assert len(cls.__dataclass_fields__) == len(declared["fields"])
        assert any(declared["doc"] in doc for doc in docs(cls, tree))
        texts = attribute_docs(tree, cls.__name__)
        for one in declared["fields"]:
            assert any(one["doc"] in text or one["doc"] in inspect.cleandoc(text) for text in texts or [""])
