"""Modules of generated records, loaded as if they were imported."""

from __future__ import annotations

import itertools
import json
import sys
import types
from importlib.util import find_spec
from typing import Any

import pytest

from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.records.codegen import NamedSchema, generate

RECORD_KINDS = [
    "dataclass",
    "msgspec",
    pytest.param("pydantic", marks=pytest.mark.skipif(find_spec("pydantic") is None, reason="needs pydantic")),
]
_NUMBERS = itertools.count()


def parsed(declared: Any) -> Schema:
    """Give the schema of a JSON value."""
    return parse_schema(json.dumps(declared))


def load(source: str) -> types.ModuleType:
    """Run the source of a module."""
    made = types.ModuleType(f"generated_{next(_NUMBERS)}")
    # Dataclasses and pydantic look for the module of a class.
    sys.modules[made.__name__] = made
    # Not with this file's own `from __future__ import annotations`.
    exec(compile(source, f"{made.__name__}.py", "exec", dont_inherit=True), vars(made))
    return made


def module(schema: Any, kind: str = "dataclass", source: str = "t.avsc") -> types.ModuleType:
    """Generate and load the module of a `Schema`, or of the JSON value of one."""
    declared = schema if isinstance(schema, Schema) else parsed(schema)
    return load(generate([NamedSchema(source, declared)], kind))


def root(made: types.ModuleType) -> Any:
    """Give the class of the outermost record of a module with one schema."""
    return made.CODEC._listed[-1]
