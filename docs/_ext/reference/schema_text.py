"""Avro schemas as tables: a row for each field, a part for each named type."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.types import Array, Enum, Fixed, Map, Named, Primitive, Record, Type, Union
from cdcavro.wire import attributes
from reference import markdown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COLUMN_VALUE: Final = "column value"
# What the attribute says of a member that matters to converters only, and no table of members has.
ENGINE_KEYS: Final = ("means", "part", "position", "unit", "ops", "necessary")
# What a page says in another place: the name in its column, and `tells` where it says how the format is detected.
_ELSEWHERE: Final = ("name", "tells")
_COLUMNS: Final = 4
_KEY: Final = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", re.MULTILINE)


def type_text(declared: Type) -> str:
    """Return a type in a few words: named types by the last part of their name, unions with bars.

    >>> type_text(Union((Primitive("null"), Array(Map(Primitive("string"))))))
    'null | array of map of string'
    """
    match declared:
        case Primitive():
            logical = declared.attributes.get("logicalType")
            return f"{declared.name} ({logical})" if logical else declared.name
        case Named():
            return short(declared)
        case Array():
            return f"array of {_grouped(declared.items)}"
        case Map():
            return f"map of {_grouped(declared.values)}"
        case Union() if is_column_value(declared):
            return COLUMN_VALUE
        case Union():
            return branches_text(declared)
    raise TypeError(f"{type(declared).__name__} is no type of Avro")


def branches_text(union: Union) -> str:
    """Return the branches of a union, with bars between them."""
    return " | ".join(type_text(branch) for branch in union.branches)


def is_column_value(declared: Type) -> bool:
    """Return whether a type is that of column values: a union, one of whose branches holds a number's text."""
    return isinstance(declared, Union) and any(
        attributes.content_of(branch) == "number" for branch in declared.branches
    )


def column_value(declared: Type) -> Union | None:
    """Return the union that the column values of a schema are."""
    return next((part for part in _parts(declared) if isinstance(part, Union) and is_column_value(part)), None)


def _grouped(declared: Type) -> str:
    text = type_text(declared)
    return f"({text})" if " | " in text else text


def short(declared: Named) -> str:
    """Return the last part of a type's name."""
    return declared.name.rpartition(".")[2]


def named_types(declared: Type) -> Iterator[Named]:
    """Return the named types of a schema, each once, from the outside inwards."""
    return (part for part in _parts(declared) if isinstance(part, Named))


def _parts(declared: Type) -> Iterator[Type]:
    """Return a type and all within it, named ones once."""
    seen: set[str] = set()
    waiting = [declared]
    while waiting:
        current = waiting.pop(0)
        if isinstance(current, Named):
            if current.name in seen:
                continue
            seen.add(current.name)
        yield current
        waiting += _within(current)


def _within(declared: Type) -> Sequence[Type]:
    match declared:
        case Record():
            return [field.type for field in declared.fields]
        case Union():
            return declared.branches
        case Array():
            return [declared.items]
        case Map():
            return [declared.values]
        case Primitive() | Enum() | Fixed():
            return []
    raise TypeError(f"{type(declared).__name__} is no type of Avro")


def type_part(declared: Named) -> str:
    """Return what a page says of a named type: its doc, and its fields or symbols."""
    parts = [_escaped(declared.doc)]
    if isinstance(declared, Record):
        parts.append(_fields(declared))
    if isinstance(declared, Enum):
        parts.append("Symbols: " + ", ".join(map(markdown.code, declared.symbols)) + ".")
    if isinstance(declared, Fixed):
        parts.append(f"{declared.size} bytes.")
    said = declared.attributes.get(attributes.ATTRIBUTE, {})
    if said:
        parts.append(rules(said))
    return markdown.page(*parts)


def _fields(record: Record) -> str:
    names = {
        field.name: field.attributes.get(attributes.ATTRIBUTE, {}).get("name", field.name) for field in record.fields
    }
    rows = []
    for field in record.fields:
        said = {
            key: value
            for key, value in field.attributes.get(attributes.ATTRIBUTE, {}).items()
            if key not in (*_ELSEWHERE, *ENGINE_KEYS)
        }
        stated = ", ".join(_stated(key, value) for key, value in said.items())
        own = [] if names == {name: name for name in names} else [markdown.code(field.name)]
        member = "every other member" if said.get("members") == "rest" else markdown.code(names[field.name])
        rows.append([member, *own, markdown.code(type_text(field.type)), _escaped(field.doc), stated])
    head = ["Member", *([] if len(rows[0]) == _COLUMNS else ["Avro field"]), "Avro type", "What it holds", "`json`"]
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    return markdown.table(head, rows)


def engine_rows(declared: Type) -> list[list[str]]:
    """Return a row for each thing that the attribute says to converters only: the member, and what is said."""
    records = [part for part in named_types(declared) if isinstance(part, Record)]
    return [
        [
            markdown.code(field.name if record is records[0] else f"{short(record)}.{field.name}"),
            _stated(key, said[key]),
        ]
        for record in records
        for field in record.fields
        for said in [field.attributes.get(attributes.ATTRIBUTE, {})]
        for key in ENGINE_KEYS
        if key in said
    ]


def _stated(key: str, value: Any) -> str:
    if value is True:
        return markdown.code(key)
    if isinstance(value, dict):
        words = ", ".join(
            f"{markdown.code(word) if word else 'else'} is {markdown.code(of)}" for word, of in value.items()
        )
        return f"{markdown.code(f'{key}:')} {words}"
    return markdown.code(f"{key}: {', '.join(value) if isinstance(value, list) else value}")


def spelled(value: Any) -> str:
    """Return a value of an attribute as code: texts bare, lists in a row."""
    if isinstance(value, list):
        return ", ".join(markdown.code(str(item)) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{markdown.code(key)} for {markdown.code(item)}" for key, item in value.items())
    return markdown.code(value if isinstance(value, str) else json.dumps(value))


def rules(said: dict[str, Any]) -> str:
    """Return what the attribute `json` of a named type says, and what that means."""
    return "\n".join(
        f"* {markdown.code(key)}: {spelled(value)}. {_meaning(key, value)}." for key, value in said.items()
    )


def _meaning(key: str, value: Any) -> str:
    """Return the meaning of a key, by the tables in the docstring of the module that reads it, as a sentence."""
    listed = [(stated, text) for name, stated, text in _meanings() if name == key]
    text = next((text for stated, text in listed if f'"{value}"' in stated), listed[0][1])
    return text[0].upper() + text[1:]


@cache
def _meanings() -> list[tuple[str, str, str]]:
    return _KEY.findall(attributes.__doc__ or "")


def _escaped(text: str) -> str:
    """Return a schema's plain text so that Markdown leaves it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", text)
