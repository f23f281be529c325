"""Generated modules of records, loaded as if they had been imported."""

from __future__ import annotations

import builtins
import itertools
import json
import keyword
import re
import sys
import types
from enum import EnumType, StrEnum
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import msgspec
import pytest

from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.records import AvroRecord, Branch, FixedBytes
from cdcavro.records.class_source import LIBRARIES
from cdcavro.records.codegen import NamedSchema, generate
from support.wire import field, record

RECORD_KINDS = [
    "dataclass",
    "msgspec",
    pytest.param("pydantic", marks=pytest.mark.skipif(find_spec("pydantic") is None, reason="needs pydantic")),
]
_NUMBERS = itertools.count()


HARD_NAMES = [
    "class", "class_", "None", "self", "cls", "from_avro", "to_json", "int", "str", "list", "dict", "field", "Field",
    "dt", "Decimal", "_a", "__a", "a", "__init__", "__slots__", "__class__", "_1", "_", "__", "schema", "json", "copy",
    "model_config", "model_fields", "R", "CODEC", "SCHEMA", "Int64", "Struct", "match", "type", "id", "x" * 200,
    "x" * 199 + "y", "Model", "AvroRecord", "f_1", "metadata", "__dict__", "__avro__", "object", "property",
]  # fmt: skip


def own_names() -> list[str]:
    """Return every name that Python, its built-ins, the libraries of records and their metaclasses have, as Avro has it."""
    owners: list[Any] = [builtins, object, type, bytes, StrEnum, EnumType, AvroRecord, Branch, FixedBytes]
    owners += [msgspec.Struct, type(msgspec.Struct)]
    if find_spec("pydantic") is not None:
        pydantic = import_module("pydantic")
        owners += [pydantic, pydantic.BaseModel, type(pydantic.BaseModel)]
    names = {name for owner in owners for name in dir(owner)} | {*keyword.kwlist, *keyword.softkwlist}
    for library in LIBRARIES.values():
        names |= {name for listed in library.imports.values() for name in listed} | {*library.prelude}
    names |= {"SCHEMA", "DDL", "CODEC", "TYPE", "TYPE_1", "Final", "Codec", "Decimal", "dt", "StructType"}
    return sorted(name for name in names if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name))


def parsed(declared: Any) -> Schema:
    """Return the schema that a JSON value describes."""
    return parse_schema(json.dumps(declared))


def load(source: str) -> types.ModuleType:
    """Run the source of a module and return the module."""
    loaded = types.ModuleType(f"generated_{next(_NUMBERS)}")
    # Dataclasses and pydantic look up the module of a class.
    sys.modules[loaded.__name__] = loaded
    # Without this file's own `from __future__ import annotations`.
    exec(compile(source, f"{loaded.__name__}.py", "exec", dont_inherit=True), vars(loaded))
    return loaded


def module(schema: Any, kind: str = "dataclass", source: str = "t.avsc") -> types.ModuleType:
    """Generate and load the module for a `Schema`, or for the JSON value of one."""
    declared = schema if isinstance(schema, Schema) else parsed(schema)
    return load(generate([NamedSchema(source, declared)], kind))


def root(made: types.ModuleType) -> Any:
    """Return the class of the outermost record in a module for one schema."""
    return made.CODEC._listed[-1]


def one(declared: Any, kind: str = "dataclass") -> Any:
    """Return the class of a record with a single field `a`; its attribute `module` is the generated module."""
    generated = module(record(field("a", declared)), kind)
    cls = root(generated)
    cls.module = generated
    return cls
