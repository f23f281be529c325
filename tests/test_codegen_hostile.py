"""Texts of a schema never become code: a canary that must not run stands wherever a schema has text."""

from __future__ import annotations

import ast
import builtins
import inspect
import json
from pathlib import Path

import pytest
from generated_modules import RECORD_KINDS, load
from hypothesis import given
from hypothesis import strategies as st
from wire import array, enum, field, mapping, record

from cdcavro.avro.schema import parse_schema
from cdcavro.errors import SchemaError
from cdcavro.records.codegen import KINDS, NamedSchema, generate

CODE = 'import pathlib; pathlib.Path("CANARY").touch()'
PAYLOADS = [
    f'"""\n{CODE}\n"""',
    f'"\n{CODE}\n"',
    f"'''\n{CODE}\n'''",
    f"'\n{CODE}\n'",
    f'\\"""\n{CODE}\n',
    f"{{{CODE}}}",
    f"\n{CODE}",
    f"\r{CODE}\r\n",
    f"\u2028{CODE}\x0c{CODE}\x85",
    "\\",
    '"',
    '""""',
    '"quoted" first',
    "\\N{BULLET} \\u0022 \\x22 \\\n",
    "\ud800 \u202e \u2066 \x00 \x1a \ufeff",
    "# -*- coding: utf-7 -*-",
    "{0} %s $x {x!r}",
    "  blanks  ",
    "a\n\n  b\n",
    "日本\n，“x”",
]
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


def hostile(text: str) -> dict:
    """Give a schema with a text wherever there may be one."""
    said = {
        "cdc": {"column": text, "type": text, "note": text, "table": {"database": text, "schema": text, "table": text}},
        "json": {"name": text},
        text: {text: [text]},
        "order": text,
    }
    raw = "".join(char for char in text if ord(char) < 256)
    inner = record(field("text", "string", default=text, doc=text, **said), name="Inner") | {"doc": text} | said
    return (
        record(
            field("string", "string", doc=text, default=text, **said),
            field("long", "string", default=text * 20),
            field("map", mapping("string"), default={text: text}),
            field("array", array("string"), default=[text, text]),
            field("raw", "bytes", default=raw),
            field("enum", enum("A", "None") | {"doc": text, "default": text} | said, default="None"),
            field("fixed", {"type": "fixed", "name": "F", "size": len(raw), "doc": text} | said, default=raw),
            field("inner", inner, default={"text": text}),
            field("decimal", {"type": "bytes", "logicalType": text} | said),
            field("union", ["null", "long", "string", "Inner"], doc=text),
        )
        | {"doc": text}
        | said
    )


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


def docs(made: object) -> set[str | None]:
    """Give the docstring of a class as Python has it, and as it is usually read."""
    return {made.__doc__, inspect.getdoc(made)}


def attribute_docs(tree: ast.Module, cls: str) -> list[str]:
    """Give the texts that stand below the fields of a class, as they are read."""
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
        assert text in (inspect.cleandoc(made.F.__doc__), made.F.__doc__)
        assert text in docs(made.E)
        assert any(text in doc for doc in docs(made.Inner))
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


@pytest.mark.parametrize("place", ["name", "namespace", "alias", "field", "field alias", "symbol"])
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
        case "field alias":
            declared["fields"][0]["aliases"] = [text]
        case _:
            declared["fields"][0]["type"]["symbols"] = [text]
    with pytest.raises(SchemaError):
        parse_schema(json.dumps(declared))


def code_lines(source: str, tree: ast.Module) -> list[str]:
    """Give the lines that hold neither docstrings nor comments."""
    docs = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    return [line for i, line in enumerate(source.split("\n"), start=1) if i not in docs]


NAMES = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,5}\Z") | st.sampled_from(
    ["class", "None", "__init__", "self", "int", "dt", "Codec", "CODEC", "_", "__a", "Model", "Final", *dir(builtins)]
)


@st.composite
def schemas(draw) -> dict:
    """Draw a record with random names and random texts everywhere."""
    text = st.text(max_size=8)
    names = draw(st.lists(NAMES, unique=True, max_size=6))
    types = st.sampled_from(["string", "long", "bytes", "null"]) | st.builds(
        lambda symbols: enum(*symbols, name=f"E{draw(st.uuids()).hex}"),
        st.lists(NAMES, min_size=1, max_size=4, unique=True),
    )
    fields = []
    for name in names:
        declared = draw(types | st.builds(array, types) | st.builds(mapping, types))
        one = field(name, declared, doc=draw(text), cdc={"column": draw(text), "type": draw(text)})
        if declared == "string":
            one["default"] = draw(text)
        fields.append(one)
    space = draw(st.sampled_from(["", "a.b", "class.def"]))
    return record(*fields, name=draw(NAMES.filter(lambda one: one not in ("bytes", "float", "int")))) | {
        "doc": draw(text),
        "namespace": space,
        draw(text): draw(text),
    }


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
        assert any(declared["doc"] in doc for doc in docs(cls))
        texts = attribute_docs(tree, cls.__name__)
        for one in declared["fields"]:
            assert any(one["doc"] in text or one["doc"] in inspect.cleandoc(text) for text in texts or [""])
