"""The Parsing Canonical Form of a schema (Avro 1.8.2, "Transforming into Parsing Canonical Form").

It is derived from the parsed types, so that every valid schema has a canonical form, whatever its
attributes say.
"""

from __future__ import annotations

import json

from cdcavro.avro.types import Array, Enum, Fixed, Map, Named, Primitive, Record, Type, Union
from cdcavro.errors import SchemaError


def canonical_form(root: Type) -> str:
    """Return the Parsing Canonical Form of a type.

    >>> canonical_form(Array(Primitive("long", {"logicalType": "timestamp-millis"})))
    '{"type":"array","items":"long"}'
    """
    return _form(root, set())


def _form(declared: Type, defined: set[str]) -> str:
    if isinstance(declared, Named):
        name = json.dumps(declared.name)
        if declared.name in defined:
            return name
        defined.add(declared.name)
        return f'{{"name":{name},{_definition(declared, defined)}}}'
    match declared:
        case Primitive(name):
            return json.dumps(name)
        case Array(items):
            return f'{{"type":"array","items":{_form(items, defined)}}}'
        case Map(values):
            return f'{{"type":"map","values":{_form(values, defined)}}}'
        case Union(branches):
            return f"[{','.join(_form(branch, defined) for branch in branches)}]"
    raise SchemaError("$", f"{type(declared).__name__} has no canonical form")


def _definition(declared: Named, defined: set[str]) -> str:
    match declared:
        case Enum(symbols=symbols):
            return f'"type":"enum","symbols":[{",".join(map(json.dumps, symbols))}]'
        case Fixed(size=size):
            return f'"type":"fixed","size":{size}'
        case Record(fields=fields):
            listed = [f'{{"name":{json.dumps(field.name)},"type":{_form(field.type, defined)}}}' for field in fields]
            return f'"type":"record","fields":[{",".join(listed)}]'
    raise SchemaError(declared.name, f"{type(declared).__name__} has no canonical form")
