"""Messages of Oracle GoldenGate's JSON formatter that hold a transaction (`avsc/goldengate_tx.avsc`).

Source: Oracle GoldenGate for Big Data, "Using the Kafka Handler": transaction mode (`gg.handler.name.mode=tx`).

* A message is the operations of a transaction, or of several that were grouped: one JSON object after another, with
  nothing or white space between them. It is not a JSON text, and becomes one here: the operations in an array.
* Each operation is a message of `goldengate`, or of `goldengate_row` if its columns stand beside the meta columns, and
  its change is that message's. The changes are numbered through.
* To the engine, each operation is a line, which it types as a message of `goldengate`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import MAX_ROWS, Change, check_count, replace
from cdcavro.engine.machine import split_column
from cdcavro.errors import MessageError, StructureError, TextError, shown
from cdcavro.exact.jsontext import MAX_LENGTH, parse_fast, render, to_bytes
from cdcavro.formats import goldengate, goldengate_row
from cdcavro.formats.bridge import Bridge
from cdcavro.wire.attributes import field_rule
from cdcavro.wire.format import BINARY, Codec
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

FORMAT: Final = "goldengate_tx"
_OPERATIONS: Final = "operations"
_SPACE: Final = b" \t\r\n"
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["{}]', re.DOTALL)


def to_changes(record: dict[str, Any], zone: tzinfo | None = None) -> list[Change]:
    """Return the changes of a transaction. Raises `StructureError`, which says of which operation."""
    operations = record[_OPERATIONS]
    check_count(operations, MAX_ROWS, f"/{_OPERATIONS}")
    if not operations:
        raise StructureError("at least one operation", "none", pointer=f"/{_OPERATIONS}")
    changes: list[Change] = []
    for i, operation in enumerate(operations):
        try:
            changes += _model_of(operation).to_changes(operation, zone)
        except MessageError as error:
            error.below(f"/{_OPERATIONS}/{i}")
            raise
    return [
        replace(change, source=replace(change.source, format=FORMAT), row=row, rows=len(changes))
        for row, change in enumerate(changes)
    ]


def _model_of(operation: dict[str, Any]) -> Bridge:
    has_images = any(type(operation.get(name)) is dict for name in ("before", "after"))
    return goldengate.BRIDGE if has_images or operation.keys() <= _meta_columns() else goldengate_row.BRIDGE


@cache
def _meta_columns() -> frozenset[str]:
    """Return the names of all members that a message of the operation model has."""
    rules = (field_rule(field) for field in get_format(goldengate.FORMAT).envelope.fields)
    return frozenset(rule.name for rule in rules if not rule.members)


def from_changes(changes: Sequence[Change], zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Return the transaction of changes, in the operation model; none if it has no operation for any."""
    own = [
        replace(one, source=replace(one.source, format=goldengate.FORMAT))
        for one in changes
        if one.source.format == FORMAT
    ]
    operations = goldengate.BRIDGE.from_changes(own or changes, zone)
    return [{_OPERATIONS: operations, BINARY: True}] if operations else []


def _split(raw: bytes) -> list[bytes]:
    """Return the objects of a text, one after another. Raises `TextError` for whatever else is in it."""
    found: list[bytes] = []
    depth = start = end = 0
    for token in _TOKEN.finditer(raw):
        if token[0] == b'"':
            raise TextError("a string that ends", f"none at byte {token.start()}")
        if depth == 0:
            start = token.start()
            _check_gap(raw[end : start + (token[0] != b"{")], end)
        depth += {b"{": 1, b"}": -1}.get(token[0], 0)
        if depth == 0:
            end = token.end()
            found.append(raw[start:end])
            check_count(found, MAX_ROWS, f"/{_OPERATIONS}")
    _check_gap(raw[start if depth else end :], start if depth else end)
    return found


def _check_gap(text: bytes, at: int) -> None:
    """Raise `TextError` for what stands between objects, or behind them, and is not white space."""
    if text.strip(_SPACE):
        expected = "whole JSON objects one after another, with nothing or white space between them"
        raise TextError(expected, f"{shown(text[:40].decode(errors='replace'))} at byte {at}")


def _sent(message: bytes | str) -> bytes | None:
    """Return a message as the handler sends it; None for the JSON that stands for one."""
    raw = to_bytes(message)
    start = raw[:64].lstrip(_SPACE)[:1]
    if start != b"{" or len(raw) > MAX_LENGTH:
        return None
    found = _split(raw)
    return raw if len(found) != 1 or "op_type" in parse_fast(raw) else None


def _text(raw: bytes) -> bytes:
    return b'{"operations":[' + b",".join(_split(raw)) + b'],"binary":true}'


def _write(record: dict[str, Any]) -> bytes:
    """Return the operations of a record one after another. Raises `StructureError` for what would be lost."""
    other = next((name for name in record if name not in (_OPERATIONS, BINARY)), None)
    if other is not None or not record[_OPERATIONS]:
        raise StructureError("operations alone, and at least one", "none" if other is None else shown(other))
    return b"".join(map(render, record[_OPERATIONS]))


BRIDGE: Final = Bridge(to_changes=to_changes, from_changes=from_changes)
CODEC: Final = Codec(
    write=_write,
    text=_text,
    column=split_column,
    lines=get_format(goldengate.FORMAT).schema,
    sent=_sent,
    joined=(goldengate.FORMAT, goldengate_row.FORMAT),
)
