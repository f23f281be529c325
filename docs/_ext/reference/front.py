"""The front page's drawing of the way of a message: what the same update is on each of its stations."""

from __future__ import annotations

from html import escape
from typing import Any, Final

from reference import markdown
from reference.update import FORMAT, TYPES, messages

# How many bytes of the payload are shown.
_BYTES: Final = 96


def way_picture(_: str = "") -> str:
    """Return the stations as HTML: text, payload, typed row, lake table, and what leads from each to the next."""
    (update,) = messages(FORMAT)
    row = update.after or {}
    types = [(column, declared, _spelled(row[column])) for column, declared in TYPES.items()]
    stations = [
        ("Text", _code(update.text), "a message from a topic or a file", "encode ⇄"),
        (
            "Payload",
            _code(_dump(update.payload[:_BYTES])),
            f"Avro: {len(update.payload)} bytes instead of {len(update.text)}",
            "Tables →",
        ),
        ("Typed row", _table(("column", "type", "value"), types), "Avro, its schema follows the DDL", "sync →"),
        ("Lake table", _table(tuple(row), [tuple(map(_spelled, row.values()))]), "Delta Lake or Iceberg", ""),
    ]
    return markdown.block("{raw} html", f'<ol class="way">\n{"".join(_station(*station) for station in stations)}</ol>')


def _station(name: str, shown: str, said: str, onwards: str) -> str:
    word, _, sign = onwards.partition(" ")
    arrow = f'<span class="way-on">{escape(word)} <b>{sign}</b></span>' if onwards else ""
    return f'<li><p class="way-name">{name}</p>{shown}<p class="way-said">{escape(said)}</p>{arrow}</li>\n'


def _code(text: str) -> str:
    return f"<pre>{escape(text, quote=False)}</pre>"


def _dump(payload: bytes) -> str:
    return f"{payload.hex(' ')} …"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>"


def _spelled(value: Any) -> str:
    return "NULL" if value is None else str(value)
