"""Every mode in which Debezium's connectors send values, as the page about them lists it: what is read of each.

Source: Debezium reference, "Data type mappings" of the connectors; `isostring` and `structured` as of version 3.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from cdcavro.change.model import Change
from cdcavro.change.operations import BINARIES, DECIMALS, TIMES, Modes, check_modes
from cdcavro.exact.jsontext import parse, same
from cdcavro.table.columns.column_type import TypeOverrides
from cdcavro.table.tables import Tables
from cdcavro.transcoding.mapping import from_changes, to_changes
from support.connect_types import CONNECT, DATA, TIME
from support.places import ROOT
from support.typed import read

PAGE = ROOT / "docs" / "explanation" / "debezium.md"
NOON = datetime(2024, 2, 29, 12, 0, 0, 500_000, tzinfo=UTC)
LOCAL = NOON.replace(tzinfo=None)
DAYS, SECONDS = 19_782, 1_709_208_000
CLOCK = {"hour": 12, "minute": 0, "second": 0, "nanos": 500_000_000, "precision": 3}
DAY = {"year": 2024, "month": 2, "day": 29, "specialValue": None}


def told(name: str | None, kind: str = "int64", **parameters: str) -> dict[str, Any]:
    """Return the embedded schema of a column."""
    return {"type": kind} | ({"name": name} if name else {}) | ({"parameters": parameters} if parameters else {})


BIGINT = told(None, **{"__debezium.source.column.type": "BIGINT UNSIGNED"})
UINT64 = told(None, **{"__debezium.source.column.type": "UINT64"})
PRECISE = told(f"{CONNECT}Decimal", "bytes", scale="2", **{"connect.decimal.precision": "9"})
PRICES = {"type": "array", "items": PRECISE}
# The setting and its mode; the connector; how the column's type is known; what is sent; what the typed column holds.
ROWS: list[tuple[str, str, str, Any, Any, Any]] = [
    ("decimal.handling.mode", "precise", "mysql", PRECISE, "AkY=", Decimal("5.82")),
    ("decimal.handling.mode", "precise", "mysql", "DECIMAL(9,2)", "AkY=", Decimal("5.82")),
    ("decimal.handling.mode", "precise", "postgresql", told(f"{DATA}VariableScaleDecimal", "struct"), {"scale": -2, "value": "BQ=="}, "500"),
    ("decimal.handling.mode", "precise", "oracle", told(f"{CONNECT}Decimal", "bytes", scale="-2", **{"connect.decimal.precision": "20"}), "BQ==", Decimal(500)),
    ("decimal.handling.mode", "precise", "postgresql", PRICES, ["AkY=", None, "AA=="], "[5.82,null,0.00]"),
    ("decimal.handling.mode", "string", "sqlserver", told(None, "string"), "5.80", "5.80"),
    ("decimal.handling.mode", "string", "mysql", "DECIMAL(9,2)", "1234", Decimal("1234.00")),
    ("decimal.handling.mode", "double", "db2", told(None, "double"), 5.8, 5.8),
    ("decimal.handling.mode", "double", "mysql", "DECIMAL(9,2)", 5.8, Decimal("5.80")),
    ("bigint.unsigned.handling.mode", "long", "mysql", BIGINT, -1, Decimal(2**64 - 1)),
    ("bigint.unsigned.handling.mode", "long", "mariadb", "BIGINT UNSIGNED", -1, Decimal(2**64 - 1)),
    ("bigint.unsigned.handling.mode", "long", "vitess", UINT64, -(2**63), Decimal(2**63)),
    ("bigint.unsigned.handling.mode", "precise", "mysql", "BIGINT UNSIGNED", "AP//////////", Decimal(2**64 - 1)),
    ("bigint.unsigned.handling.mode", "precise", "mysql", told(f"{CONNECT}Decimal", "bytes", scale="0", **{"connect.decimal.precision": "20"}), "AP//////////", Decimal(2**64 - 1)),
    ("bigint.unsigned.handling.mode", "string", "vitess", told(None, "string"), "18446744073709551615", "18446744073709551615"),
    ("time.precision.mode", "adaptive", "postgresql", told(f"{TIME}Date", "int32"), DAYS, NOON.date()),
    ("time.precision.mode", "adaptive", "postgresql", told(f"{TIME}MicroTimestamp"), SECONDS * 10**6 + 500_000, LOCAL),
    ("time.precision.mode", "adaptive", "sqlserver", told(f"{TIME}NanoTimestamp"), SECONDS * 10**9 + 500_000_000, LOCAL),
    ("time.precision.mode", "adaptive", "informix", told(f"{TIME}NanoTime"), 43_200_500_000_000, LOCAL.time()),
    ("time.precision.mode", "adaptive", "db2", told(f"{TIME}Time", "int32"), 43_200_500, LOCAL.time()),
    ("time.precision.mode", "adaptive_time_microseconds", "mysql", "TIME(1)", 43_200_500_000, LOCAL.time()),
    ("time.precision.mode", "adaptive_time_microseconds", "mysql", "DATETIME(3)", SECONDS * 1000 + 500, LOCAL),
    ("time.precision.mode", "adaptive_time_microseconds", "mysql", "DATETIME(6)", SECONDS * 10**6 + 500_000, LOCAL),
    ("time.precision.mode", "adaptive_time_microseconds", "mysql", "TIMESTAMP(1)", "2024-02-29T12:00:00.5Z", NOON),
    ("time.precision.mode", "connect", "mysql", "DATETIME(6)", SECONDS * 1000 + 500, LOCAL),
    ("time.precision.mode", "connect", "mysql", "TIME(6)", 43_200_500, LOCAL.time()),
    ("time.precision.mode", "connect", "oracle", told(f"{CONNECT}Timestamp"), SECONDS * 1000 + 500, LOCAL),
    ("time.precision.mode", "isostring", "mysql", "DATE", "2024-02-29Z", NOON.date()),
    ("time.precision.mode", "isostring", "mysql", "TIME(1)", "12:00:00.5Z", LOCAL.time()),
    ("time.precision.mode", "isostring", "mysql", "DATETIME(6)", "2024-02-29T12:00:00.5Z", LOCAL),
    ("time.precision.mode", "isostring", "sqlserver", told(f"{TIME}IsoDate", "string"), "2024-02-29Z", NOON.date()),
    ("time.precision.mode", "isostring", "oracle", told(f"{TIME}IsoTimestamp", "string"), "2024-02-29T12:00:00.5Z", LOCAL),
    ("time.precision.mode", "isostring", "informix", told(f"{TIME}IsoTime", "string"), "12:00:00.5Z", LOCAL.time()),
    ("time.precision.mode", "microseconds", "postgresql", told(f"{TIME}MicroTime"), 43_200_500_000, LOCAL.time()),
    ("time.precision.mode", "microseconds", "mysql", "DATETIME", SECONDS * 10**6, LOCAL.replace(microsecond=0)),
    ("time.precision.mode", "nanoseconds", "postgresql", told(f"{TIME}NanoTime"), 43_200_500_000_000, LOCAL.time()),
    ("time.precision.mode", "nanoseconds", "mysql", "DATETIME(1)", SECONDS * 10**9 + 500_000_000, LOCAL),
    ("time.precision.mode", "structured", "mysql", "DATE", DAY, NOON.date()),
    ("time.precision.mode", "structured", "mysql", "DATETIME(3)", DAY | CLOCK, LOCAL),
    ("time.precision.mode", "structured", "db2", told(f"{TIME}StructuredTime", "struct"), CLOCK, LOCAL.time()),
    ("time.precision.mode", "structured", "oracle", told(f"{TIME}StructuredTimestamp", "struct"), DAY | CLOCK, LOCAL),
    ("time.precision.mode", "structured", "postgresql", told(f"{TIME}StructuredZonedTimestamp", "struct"), DAY | CLOCK | {"hour": 20, "offsetSeconds": 28_800, "zoneId": None}, NOON),
    ("binary.handling.mode", "bytes", "postgresql", told(None, "bytes"), "/v8=", b"\xfe\xff"),
    ("binary.handling.mode", "bytes", "mysql", "BLOB", "/v8=", b"\xfe\xff"),
    ("binary.handling.mode", "base64", "mysql", "VARBINARY(9)", "/v8=", b"\xfe\xff"),
    ("binary.handling.mode", "base64-url-safe", "mysql", "BLOB", "_v8=", b"\xfe\xff"),
    ("binary.handling.mode", "hex", "mysql", "BINARY(2)", "feff", b"\xfe\xff"),
    ("binary.handling.mode", "hex", "sqlserver", told(None, "string"), "feff", "feff"),
    ("interval.handling.mode", "numeric", "postgresql", told(f"{TIME}MicroDuration"), 3_600_000_000, 3_600_000_000),
    ("interval.handling.mode", "numeric", "oracle", told(f"{TIME}NanoDuration"), 1, 1),
    ("interval.handling.mode", "string", "oracle", told(f"{TIME}Interval", "string"), "P1Y2M3DT4H5M6.78S", "P1Y2M3DT4H5M6.78S"),
    ("hstore.handling.mode", "json", "postgresql", told(f"{DATA}Json", "string"), '{"a":"1"}', '{"a":"1"}'),
    ("hstore.handling.mode", "map", "postgresql", told(None, "map"), {"a": "1", "b": None}, '{"a":"1","b":null}'),
    ("converters", "TinyIntOneToBooleanConverter", "mysql", told(None, "boolean"), True, True),
    ("converters", "TinyIntOneToBooleanConverter", "mysql", "TINYINT(1)", True, 1),
]  # fmt: skip
MODES = {"decimal.handling.mode": "decimals", "time.precision.mode": "times", "binary.handling.mode": "binaries"}
TYPES = [
    (f"{DATA}Tsvector", "string", "'a':1", "'a':1"),
    (f"{DATA}DoubleVector", "array", [0.5, 1.25], "[0.5,1.25]"),
    (f"{DATA}FloatVector", "array", [0.5], "[0.5]"),
    (f"{DATA}SparseDoubleVector", "struct", {"dimensions": 9, "vector": [[1, 0.5]]}, '{"dimensions":9,"vector":[[1,0.5]]}'),
    (f"{DATA}geometry.Circle", "struct", {"center": {"x": 1.5}, "radius": 2.5}, '{"center":{"x":1.5},"radius":2.5}'),
    (f"{DATA}geometry.Line", "struct", {"a": 1.5, "b": 2.5, "c": 3.5}, '{"a":1.5,"b":2.5,"c":3.5}'),
    (f"{TIME}ZonedTime", "string", "12:00:00+08:00", "12:00:00+08:00"),
    (f"{TIME}StructuredZonedTime", "struct", {"hour": 1, "offsetSeconds": 0}, '{"hour":1,"offsetSeconds":0}'),
    (f"{TIME}StructuredDuration", "struct", {"months": 1}, '{"months":1}'),
    (f"{TIME}Year", "int32", 2024, 2024),
    (f"{DATA}EnumSet", "string", "a,b", "a,b"),
    (f"{DATA}Uuid", "string", "b68a35a7-17ad-35b3-af2a-ae46edb4545a", "b68a35a7-17ad-35b3-af2a-ae46edb4545a"),
    (f"{DATA}Xml", "string", "<a/>", "<a/>"),
    (f"{DATA}Ltree", "string", "a.b", "a.b"),
]  # fmt: skip


def message(connector: str, sent: Any, schema: dict[str, Any] | None = None) -> str:
    """Return an insert of a row with the column `x`, with its schema if there is one."""
    source = {"connector": connector, "db": "d", "table": "t"}
    value = {"op": "c", "before": None, "after": {"x": sent}, "source": source, "transaction": None}
    fields = [{"field": "after", "type": "struct", "fields": [{"field": "x"} | (schema or {})]}]
    return json.dumps(value if schema is None else {"schema": {"fields": fields}, "payload": value})


def typed(tables: Tables, text: str) -> tuple[Any, list[str]]:
    """Return the value of `x` in a typed row, and the names of misfits; the message comes back from its change."""
    (change,) = to_changes(text, "debezium")
    (made,) = tables.add(change)
    for one in (change, made.change):
        (back,) = from_changes([Change.from_avro(one.to_avro())], "debezium")
        assert same(parse(back), parse(text))
    after = read(made.payload, made.schema.envelope)["after"]
    return after[made.schema.columns[0].field], list(after["unparsed"])


@pytest.mark.parametrize(("setting", "mode", "connector", "known", "sent", "held"), ROWS)
def test_a_value_is_read_in_every_mode(setting, mode, connector, known, sent, held):
    """By the embedded schema, or by the type that a schema change or the user tells and the mode that is given."""
    given = {MODES[setting]: mode} if setting in MODES and mode not in ("double", None) else {}
    if isinstance(known, dict):
        found = typed(Tables(**given), message(connector, sent, known))
        assert found == (held, [])
        assert type(found[0]) is type(held)
        return
    create = {"source": {"connector": connector, "db": "d"}, "databaseName": "d", "ddl": f"CREATE TABLE t (x {known})"}
    column = {"name": "x", "typeExpression": known}
    create["tableChanges"] = [{"type": "CREATE", "id": '"d"."t"', "table": {"columns": [column]}}]
    stream = Tables(**given)
    stream.add(to_changes(json.dumps(create), "debezium")[0])
    types = Tables(given=TypeOverrides.from_mapping({"t": {"x": known}}), **given)
    for tables in (stream, types):
        assert typed(tables, message(connector, sent)) == (held, [])


@pytest.mark.parametrize(("name", "kind", "sent", "held"), TYPES)
def test_every_other_semantic_type_is_held_without_a_misfit(name, kind, sent, held):
    """Structs and arrays as their JSON text, everything else as it is."""
    tables = Tables()
    assert typed(tables, message("postgresql", sent, told(name, kind))) == (held, [])
    assert not str(tables.tables[0].schema.columns[0].note).startswith("unknown")


@pytest.mark.parametrize("connector", ["postgresql", "oracle", "sqlserver", "db2", "informix"])
def test_without_schemas_the_semantic_type_can_be_given_for_any_connector(connector):
    """As the connector itself calls it."""
    for setting, _, _, known, sent, held in ROWS:
        if isinstance(known, dict) and known.get("name") and setting != "bigint.unsigned.handling.mode":
            parameters = {"connect.decimal.precision": "precision"}
            shown = [f"{parameters.get(name, name)}={value}" for name, value in known.get("parameters", {}).items()]
            type = known["name"] + (f"({','.join(shown)})" if shown else "")
            tables = Tables(given=TypeOverrides.from_mapping({"t": {"x": type}}))
            assert typed(tables, message(connector, sent)) == (held, [])


@pytest.mark.parametrize("connector", ["postgresql", "oracle", "sqlserver", "mysql"])
@pytest.mark.parametrize("schema", [None, told(None, "string")])
@pytest.mark.parametrize(
    ("mode", "sent"), [("hex", "deadbeef"), ("base64-url-safe", "3q2-7w=="), ("base64", "3q2+7w==")]
)
def test_bytes_sent_as_text_are_bytes_again_if_the_type_and_the_mode_are_given(connector, schema, mode, sent):
    """With an embedded schema, which only says that it is a text, and without; hexadecimal digits could be base64."""
    tables = Tables(given=TypeOverrides.from_mapping({"t": {"x": "varbinary(9)"}}), binaries=mode)
    assert typed(tables, message(connector, sent, schema)) == (bytes.fromhex("deadbeef"), [])


def test_the_page_lists_every_mode_and_nothing_else():
    """Each mode of each setting has a row in the page's table and a row here."""
    listed = set(re.findall(r"^\| `([\w.]+)` \| `([\w-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == {(setting, mode) for setting, mode, *_ in ROWS}
    for setting, known in (
        ("decimal.handling.mode", {*DECIMALS, "double"}),
        ("time.precision.mode", {*TIMES}),
        ("binary.handling.mode", {*BINARIES}),
    ):
        assert {mode for name, mode in listed if name == setting} == known


def test_a_mode_that_is_not_known_is_refused():
    """With those that are."""
    assert check_modes("precise", "adaptive_time_microseconds", "bytes") == Modes()
    with pytest.raises(ValueError, match=r"^times are .*nanoseconds or structured, not 'seconds'$"):
        check_modes("precise", "seconds", "bytes")
    with pytest.raises(ValueError, match=r"^binaries are bytes, base64, base64-url-safe or hex, not 'text'$"):
        Tables(binaries="text")
