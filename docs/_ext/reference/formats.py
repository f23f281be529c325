"""A page for each format, made from its wire schema, its module's docstring and its samples."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import io
import json
import re
from typing import TYPE_CHECKING, Any, Final

import fastavro
from rich.pretty import pretty_repr

from cdcavro import FORMATS
from cdcavro.wire import attributes
from cdcavro.wire.attributes import marked_paths, member_path
from cdcavro.wire.formats import change_format, get_format
from reference import markdown, schema_text
from reference.places import SAMPLES
from reference.update import TYPES, messages

if TYPE_CHECKING:
    from cdcavro import Change
    from cdcavro.avro.types import Named
    from cdcavro.wire.format import Format

# The message that a page shows; of a format that has none of these, the first one.
_SHOWN: Final = ("insert", "insert-en", "update-enum")
_COLUMN_VALUE: Final = "What a column may hold in a row; in the table above it has this short name. Its Avro type:"
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_WIDTH: Final = 88


def format_list(folder: str = "") -> str:
    """Return the list of all formats: what each is, in the order in which `sniff` prefers them.

    `folder` leads from the list to the pages of the formats, and ends with a slash.
    """
    return "\n".join(f"* [`{name}`]({folder}{name}.md): {_first(get_format(name).envelope.doc)}" for name in FORMATS)


def format_page(name: str) -> str:
    """Return the page of a format."""
    format = get_format(name)
    return markdown.page(
        _doc(format),
        *_update(name),
        *_types(format),
        "## How it differs",
        _particulars(name),
        "## How it is detected",
        _detected(format),
        *_sample(name),
        *_schema(name),
        *_for_the_engine(format),
    )


def change_page(_: str = "") -> str:
    """Return the page of the schema of changes."""
    format = change_format()
    return markdown.page(_doc(format), *_types(format), *_schema("change"))


def attribute_page(_: str = "") -> str:
    """Return the page of the attribute `json`, which is the docstring of the module that reads it."""
    return inspect.getdoc(attributes) or ""


def _first(doc: str) -> str:
    text = doc.partition(" Source: ")[0].partition(": ")[0].rstrip(".") + "."
    return text[0].lower() + text[1:]


def _doc(format: Format) -> str:
    return format.envelope.doc.partition(" Source: ")[0]


def _update(name: str) -> list[str]:
    """Return the update as a message of the format, and what it becomes: its changes and its typed row."""
    shown = messages(name)
    one = len(shown) == 1
    rows = {"before": [message.before for message in shown], "after": [message.after for message in shown]}
    before, after = (next((row for row in found if row is not None), {}) for found in rows.values())
    types = [
        [markdown.code(column), markdown.code(declared), _cell(before, column), _cell(after, column)]
        for column, declared in TYPES.items()
    ]
    origin = "its messages declare" if shown[0].change.columns else "`--types` gives, as its messages declare none"
    lacking = "" if before and after else "; the format does not send the row before"
    return [
        "## A message and what it becomes",
        f"An update of a row, as {'this format has it' if one else 'two messages of this format'}; times are in UTC:",
        *(markdown.block("json", indented(message.text)) for message in shown),
        f"{'Its change' if one else 'Their changes'}, by {{py:func}}`cdcavro.to_changes`: every format becomes [the same record](../change.md).",
        *(markdown.block("json", indented(_change_text(message.change))) for message in shown),
        f"The typed row of {{py:class}}`cdcavro.Tables`, with the types that {origin}{lacking}:",
        markdown.table(["Column", "Declared type", "Before", "After"], types),
    ]


def _change_text(change: Change) -> str:
    return change_format().decode(change.to_avro()).decode()


def _cell(row: dict[str, Any], column: str) -> str:
    return "" if column not in row else "NULL" if row[column] is None else markdown.code(str(row[column]))


def _particulars(name: str) -> str:
    """Return the docstring of a format's module without its title."""
    doc = inspect.getdoc(importlib.import_module(f"cdcavro.formats.{name}")) or ""
    return doc.partition("\n\n")[2]


def _detected(format: Format) -> str:
    required = [".".join(member_path(path)) for path, _ in marked_paths(format.envelope, "required")]
    telling = list(marked_paths(format.envelope, "tells"))
    by_value = {".".join(member_path(path)): said for path, said in telling if said is not True}
    others = [".".join(member_path(path)) for path, said in telling if said is True]
    needed = [name for name in required if name not in others and name not in by_value]
    lines = []
    if needed:
        lines.append(f"* Required: {_listed(needed)}.")
    if others:
        lines.append(f"* Any of these members identifies it: {_listed(others)}.")
    lines += [f"* So does `{name}`, if it is {_listed(values, 'or')}." for name, values in by_value.items()]
    rule = "A message fits that has all required members and at least one that identifies the format; {py:func}`cdcavro.sniff` takes the format of which most such members are there."
    return markdown.page(rule, "\n".join(lines))


def _listed(names: list[str] | tuple[str, ...], word: str = "and") -> str:
    coded = [markdown.code(name) for name in names]
    return coded[0] if len(coded) == 1 else f"{', '.join(coded[:-1])} {word} {coded[-1]}"


def _for_the_engine(format: Format) -> list[str]:
    """Return what the attribute `json` says that matters to converters only, folded."""
    said = format.envelope.attributes.get("json", {})
    marked = schema_text.engine_rows(format.envelope)
    if not said and not marked:
        return []
    parts = [
        "<details><summary>Member by member</summary>",
        markdown.table(["Member", "`json`"], marked),
        "</details>",
    ]
    return [
        "## For the engine",
        "What the schema says besides, in [its attribute `json`](../attributes.md): of the format as a whole, and what each member is of a change and of a typed row.",
        schema_text.rules(said),
        *(parts if marked else []),
    ]


def _types(format: Format) -> list[str]:
    envelope, *others = schema_text.named_types(format.envelope)
    parts = ["## Members", schema_text.type_part(_undocumented(envelope))]
    value = schema_text.column_value(format.envelope)
    if value is not None:
        parts += [
            f"### {schema_text.COLUMN_VALUE.capitalize()}",
            _COLUMN_VALUE,
            markdown.block("text", schema_text.branches_text(value)),
        ]
    for declared in others:
        parts += [f"### {schema_text.short(declared)}", schema_text.type_part(declared)]
    return parts


def _undocumented(envelope: Named) -> Named:
    """Return the envelope without the text and the attribute that the page shows elsewhere."""
    return dataclasses.replace(envelope, doc="", attributes={})


def _sample(name: str) -> list[str]:
    files = {path.stem: path for path in sorted((SAMPLES / name).glob("*.json"))}
    shown = next(stem for stem in (*_SHOWN, *files) if stem in files)
    text = files[shown].read_text(encoding="utf-8").strip()
    payload = get_format(name).encode(text)
    record = fastavro.schemaless_reader(io.BytesIO(payload), fastavro.parse_schema(_json(name)), None)
    said = f"Its payload has {len(payload)} bytes instead of {len(text.encode())}, and reads, for instance with fastavro, as:"
    others = ", ".join(markdown.code(stem) for stem in files if stem != shown)
    return [
        "## A payload",
        f"The sample `{shown}.json`, set in lines:",
        markdown.block("json", indented(text)),
        said,
        markdown.block("python", pretty_repr(record, max_width=_WIDTH, indent_size=2)),
        f"Other samples in `cdcavro/samples/{name}`: {others}.",
    ]


def _json(name: str) -> Any:
    return json.loads(get_format(name).schema.json)


def _schema(name: str) -> list[str]:
    format = change_format() if name == "change" else get_format(name)
    return [
        "## The schema",
        f"The record is `{format.envelope.name}`, its CRC-64-AVRO fingerprint `{format.schema.fingerprint}`.",
        f"As a file: {{download}}`{name}.avsc </../avsc/{name}.avsc>`; from the command line: `cdcavro schema {name}`."
        if name != "change"
        else f"As a file: {{download}}`{name}.avsc </../avsc/{name}.avsc>`.",
        f"<details><summary>{name}.avsc</summary>",
        f"```{{literalinclude}} /../avsc/{name}.avsc\n:language: json\n```",
        "</details>",
    ]


def indented(text: str, width: int = _WIDTH) -> str:
    """Return JSON text in lines, with the digits and spellings that it has; what fits a line stands in one.

    >>> print(indented('{"a":[1.20,{}],"b":"x"}', 12))
    {
      "a": [1.20, {}],
      "b": "x"
    }
    """
    tokens = _TOKEN.findall(text)
    made, at = _laid_out(tokens, 0, 0, width)
    if at != len(tokens):
        raise ValueError("more than one JSON value")
    return made


def _laid_out(tokens: list[str], at: int, depth: int, width: int) -> tuple[str, int]:
    opening = tokens[at]
    if opening not in ("{", "["):
        return opening, at + 1
    items, at = [], at + 1
    while tokens[at] not in ("}", "]"):
        if tokens[at] == ",":
            at += 1
            continue
        key = ""
        if opening == "{":
            key, at = f"{tokens[at]}: ", at + 2
        value, at = _laid_out(tokens, at, depth + 1, width)
        items.append(key + value)
    flat = opening + ", ".join(items) + tokens[at]
    if depth and "\n" not in flat and len(flat) + 2 * depth <= width:
        return flat, at + 1
    indent = "  " * (depth + 1)
    return f"{opening}\n{indent}" + f",\n{indent}".join(items) + f"\n{indent[2:]}{tokens[at]}", at + 1
