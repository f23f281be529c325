"""Values of older fields and what they are in the type that took over: None where that is not exact.

Among them are messages about a row, of which some lack what has another type from a statement between them on.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from support.messages import canal

LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
DATE = {"type": "int", "logicalType": "date"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
NOON = dt.datetime(2024, 2, 29, 12)  # noqa: DTZ001  a local time
MIDNIGHT = dt.datetime(2024, 2, 29)  # noqa: DTZ001  a local time


def decimal(precision: int, scale: int) -> dict[str, Any]:
    """Return the Avro type of a decimal."""
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


# The older type, the newer one, a value, and what it becomes.
CASES: list[tuple[Any, Any, Any, Any]] = [
    (decimal(5, 2), decimal(10, 4), Decimal("1.25"), Decimal("1.2500")),
    (decimal(5, 2), decimal(5, 4), Decimal("1.25"), Decimal("1.2500")),
    (decimal(5, 2), decimal(5, 4), Decimal("10.25"), None),
    (decimal(10, 4), decimal(5, 2), Decimal("1.2500"), Decimal("1.25")),
    (decimal(10, 4), decimal(5, 2), Decimal("1.2345"), None),
    (decimal(38, 0), decimal(38, 2), Decimal("9" * 38), None),
    ("int", decimal(5, 2), 7, Decimal("7.00")),
    ("int", decimal(5, 2), -1000, None),
    (decimal(20, 2), "int", Decimal("7.00"), 7),
    (decimal(20, 2), "int", Decimal("7.01"), None),
    (decimal(20, 2), "int", Decimal("2147483648.00"), None),
    (decimal(20, 0), "long", Decimal(-(2**63)), -(2**63)),
    (decimal(20, 0), "long", Decimal(2**63), None),
    ("long", "int", 2**31 - 1, 2**31 - 1),
    ("long", "int", 2**31, None),
    (decimal(10, 2), "double", Decimal("1.10"), 1.1),
    (decimal(38, 2), "double", Decimal("12345678901234567890.12"), None),
    ("double", decimal(10, 2), 1.1, Decimal("1.10")),
    ("double", decimal(10, 2), 1.125, None),
    ("double", decimal(10, 2), float("nan"), None),
    ("double", "long", 3.0, 3),
    ("double", "int", 3.5, None),
    ("double", "int", 2.0**31, None),
    ("double", "long", 3.5, None),
    ("double", "long", -0.0, 0),
    ("double", "long", 2.0**62, None),
    ("double", "long", 2.0**63, None),
    ("double", "long", -(2.0**63), None),
    ("double", "long", float("inf"), None),
    ("long", "double", 2**53, 2.0**53),
    ("long", "double", 2**53 + 1, None),
    ("long", "double", 2**62, None),
    ("long", "double", 2**63 - 1, None),
    ("long", "double", -(2**63), None),
    ("bytes", "string", "é日😀".encode(), "é日😀"),
    ("bytes", "string", b"", ""),
    ("bytes", "string", "a\0\ufffd".encode(), "a\0\ufffd"),
    *(("bytes", "string", raw, None) for raw in (b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80")),
    ("int", "string", -5, "-5"),
    (decimal(10, 7), "string", Decimal("0.0000001"), "0.0000001"),
    (decimal(5, 2), "string", Decimal("0.00"), "0.00"),
    ("double", "string", 1.5, None),
    ("string", "int", "5", 5),
    ("string", "int", "05", None),
    ("string", "int", " 5", None),
    ("string", "int", "5\n", None),
    ("string", "int", "five", None),
    ("string", "int", "2147483648", None),
    ("string", decimal(5, 2), "1.5", Decimal("1.50")),
    ("string", decimal(5, 2), "1.505", None),
    ("string", "double", "0.1", 0.1),
    ("string", "double", "0.1234567890123456789", None),
    ("string", DATE, "2024-02-29", MIDNIGHT.date()),
    ("string", DATE, "2024-02-29\n", None),
    ("string", DATE, "0001-01-01", dt.date(1, 1, 1)),
    ("string", DATE, "0000-01-01", None),
    ("string", DATE, "2024-2-29", None),
    ("string", DATE, "2023-02-29", None),
    (DATE, "string", MIDNIGHT.date(), "2024-02-29"),
    (DATE, LOCAL, MIDNIGHT.date(), MIDNIGHT),
    (LOCAL, DATE, MIDNIGHT, MIDNIGHT.date()),
    (LOCAL, DATE, NOON, None),
    (LOCAL, "string", NOON, None),
    ("string", "string", "05", "05"),
    ("bytes", "bytes", b"5", b"5"),
    (LOCAL, LOCAL, NOON, NOON),
    ("long", "long", -5, -5),
    ("double", "double", 0.1, 0.1),
    ("boolean", "int", True, 1),
    ("int", "boolean", 0, False),
    ("int", "boolean", 2, None),
]


_TYPES = {"id": "int", "a": "int", "d": "double", "n": "int"}
_NEWER = {**_TYPES, "a": "varchar(9)", "d": "varchar(9)"}
# An integer has one text; a double has several, so only its older column has it.
LACKING = [
    canal("INSERT", [{"id": "1", "a": "5", "d": "0.1", "n": "1"}], id=1, mysqlType=_TYPES),
    canal("UPDATE", [{"id": "1", "n": "2"}], id=3, old=[{"n": "1"}], mysqlType=_TYPES),
    canal("ALTER", [], id=4, isDdl=True, sql="ALTER TABLE t MODIFY a VARCHAR(9), MODIFY d VARCHAR(9)"),
    canal("UPDATE", [{"id": "1", "n": "3"}], id=5, old=[{"n": "2"}], mysqlType=_NEWER),
]
# A change from before the statement, which comes in a file of its own.
LATE = canal("UPDATE", [{"id": "1", "a": "6"}], id=2, old=[{"a": "5"}], mysqlType=_TYPES)
