"""What the shop's producers and its server say differently of a value, by kind, and the final tables beside the server's."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from support.shop_tables import MESSAGES, ORACLE, Row, Unparsed, is_same, value_of

OLD_AMOUNT = "amount (until version 4)"
# What each kind of loss does to a value: of Canal's and Debezium's, or of a producer's and the server's.
KINDS = {
    "canal: the zeros of a long DECIMAL's fraction": lambda one, two: _number(one) == _number(two) is not None,
    "canal: latin1 read as UTF-8": lambda one, two: "\ufffd" in str(one) and one == _damaged(two),
    "canal: an emoji in an ENUM's label": lambda one, two: (one, two) == ("?", "😀"),
    "debezium: null for a zero date": lambda one, two: two is None and type(one) is Unparsed and "-00" in one.text,
    "debezium: the epoch for a zero TIMESTAMP": lambda one, two: two == EPOCH and one.text.startswith("0000-00-00 "),
    "debezium: 1900 for the YEAR 0000": lambda one, two: (one, two) == (0, 1900),
    "debezium: the default for null": lambda one, two: (one, two) == (None, "n/a"),
    "JSON: spaces": lambda one, two: _json(one, Decimal) == _json(two, Decimal) is not None,
    "JSON: a double written out": lambda one, two: (
        _json(one, float) == _json(two, float) is not None and _json(one, Decimal) != _json(two, Decimal)
    ),
    "another run": lambda one, two: type(one) is type(two) is datetime and one.year == two.year == 2026,
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Final tables: producer, table, column, kind of loss, number of values.
FINAL_LOSSES = [
    ("canal", "all_types", "vl", "canal: latin1 read as UTF-8", 1),
    ("canal", "all_types", "js", "JSON: spaces", 1),
    *((name, "orders_v3", "created", "another run", 1) for name in MESSAGES),
]
# Rows that TRUNCATE took away, which Debezium does not send.
LEFT = {"canal": {}, "debezium": {"orders_v3": 6}}


def kind_of(one: Any, two: Any) -> str:
    """Return the one kind of loss that explains how two values differ; both values where there is none."""
    kinds = [kind for kind, explains in KINDS.items() if explains(one, two)]
    return kinds[0] if len(kinds) == 1 else f"{one!r} and {two!r} are {kinds}"


def _number(value: Any) -> Decimal | None:
    return Decimal(value) if type(value) is str and re.fullmatch(r"-?\d+\.\d+", value) else None


def _damaged(text: str) -> str:
    return text.encode("latin-1").decode(errors="replace")


def _json(value: Any, number: type) -> Any:
    if type(value) is not str or not value.startswith("{"):
        return None
    return json.loads(value, parse_int=number, parse_float=number)


def assert_as_the_server(producer: str, final: Mapping[str, Sequence[Row]], keys: Mapping[str, Sequence[str]]) -> None:
    """Check that the final tables have the server's rows and values, except for the listed losses."""
    found, left = Counter(), {}
    assert set(final) == set(ORACLE)
    for name, rows in final.items():
        types = dict(ORACLE[name]["columns"])
        by_key = {tuple(str(row[column]) for column in keys[name]): dict(row) for row in rows}
        assert len(by_key) == len(rows)
        for expected in ORACLE[name]["rows"]:
            row = by_key.pop(tuple(expected[column] for column in keys[name]))
            assert row.pop(OLD_AMOUNT, None) is None
            assert list(row) == list(expected)
            values = {column: value_of(text, types[column]) for column, text in expected.items()}
            differing = [column for column in row if not is_same(row[column], values[column])]
            found.update((name, column, kind_of(row[column], values[column])) for column in differing)
        left |= {name: len(by_key)} if by_key else {}
    assert found == {tuple(loss): count for own, *loss, count in FINAL_LOSSES if own == producer}
    assert left == LEFT[producer]
