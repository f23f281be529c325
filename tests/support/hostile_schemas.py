"""Schemas in which every text would run as code if it were not escaped."""

from __future__ import annotations

import builtins

from hypothesis import strategies as st

from support.wire import array, enum, field, mapping, record

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


NAMES = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,5}\Z") | st.sampled_from(
    ["class", "None", "__init__", "self", "int", "dt", "Codec", "CODEC", "_", "__a", "Model", "Final", *dir(builtins)]
)


def hostile(text: str) -> dict:
    """Return a schema with a text in every place that can have one."""
    attributes = {
        "cdc": {"column": text, "type": text, "note": text, "table": {"database": text, "schema": text, "table": text}},
        "json": {"name": text},
        text: {text: [text]},
    }
    raw = "".join(char for char in text if ord(char) < 256)
    inner = (
        record(field("text", "string", default=text, doc=text, **attributes), name="Inner") | {"doc": text} | attributes
    )
    return (
        record(
            field("string", "string", doc=text, default=text, **attributes),
            field("long", "string", default=text * 20),
            field("map", mapping("string"), default={text: text}),
            field("array", array("string"), default=[text, text]),
            field("raw", "bytes", default=raw),
            field("enum", enum("A", "None") | {"doc": text, "x-default": text} | attributes, default="None"),
            field("fixed", {"type": "fixed", "name": "F", "size": len(raw), "doc": text} | attributes, default=raw),
            field("inner", inner, default={"text": text}),
            field("decimal", {"type": "bytes", "logicalType": text} | attributes),
            field("union", ["null", "long", "string", "Inner"], doc=text),
        )
        | {"doc": text}
        | attributes
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
        drawn = field(name, declared, doc=draw(text), cdc={"column": draw(text), "type": draw(text)})
        if declared == "string":
            drawn["default"] = draw(text)
        fields.append(drawn)
    space = draw(st.sampled_from(["", "a.b", "class.def"]))
    return record(*fields, name=draw(NAMES.filter(lambda name: name not in ("bytes", "float", "int")))) | {
        "doc": draw(text),
        "namespace": space,
        draw(text): draw(text),
    }
