"""Every type of Kafka Connect and Debezium that values of columns can have."""

from __future__ import annotations

import struct
from base64 import b64encode

from hypothesis import strategies as st

from cdcavro.exact.numbers import number
from support.strategies import strings

CONNECT = "org.apache.kafka.connect.data."
DATA = "io.debezium.data."
TIME = "io.debezium.time."
TYPES = [
    *(
        f"{CONNECT}{name}"
        for name in ("Decimal(precision=10,scale=2)", "Decimal(scale=0)", "Date", "Time", "Timestamp")
    ),
    *(f"{TIME}{name}" for name in ("Date", "Time", "MicroTime", "NanoTime", "Timestamp", "MicroTimestamp")),
    *(f"{TIME}{name}" for name in ("NanoTimestamp", "ZonedTimestamp", "Year")),
    *(f"{DATA}{name}" for name in ("Bits(length=12)", "Bits", "Enum", "EnumSet", "Json", "VariableScaleDecimal")),
    *(f"{DATA}geometry.{name}" for name in ("Point", "Geometry", "Geography")),
    *(f"{TIME}{name}" for name in ("IsoDate", "IsoTime", "IsoTimestamp")),
    *(f"{TIME}Structured{name}" for name in ("Date", "Time", "Timestamp", "ZonedTimestamp")),
    f"{CONNECT}Decimal(precision=10,scale=-2)",
    f"array<{CONNECT}Decimal(precision=10,scale=2)>",
    f"array<{DATA}VariableScaleDecimal>",
    f"array<array<{TIME}MicroTimestamp>>",
]
DECLARED = [
    *(
        "DECIMAL(65,30)",
        "NUMERIC(5)",
        "BIGINT UNSIGNED",
        "BIGINT",
        "DATE",
        "TIME",
        "TIME(6)",
        "DATETIME",
        "DATETIME(2)",
    ),
    *(
        "DATETIME(5)",
        "TIMESTAMP",
        "TIMESTAMP(3)",
        "BIT(1)",
        "BIT(12)",
        "ENUM('a','b,c')",
        "POINT",
        "GEOMETRY",
        "BLOB",
        "BINARY(4)",
        "TINYINT(1)",
        "INT",
    ),
]


_parts = {
    **{name: st.integers(0, most) for name, most in (("year", 9999), ("month", 12), ("day", 31), ("hour", 23))},
    **{name: st.integers(0, most) for name, most in (("minute", 59), ("second", 59), ("nanos", 999_999_999))},
    "precision": st.none() | st.integers(0, 9),
    "offsetSeconds": st.integers(-90_000, 90_000),
    "specialValue": st.none() | st.just("POSITIVE_INFINITY"),
}
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(10**7), 10**13),
    st.decimals(allow_nan=False, allow_infinity=False, places=2).map(lambda value: number(f"{value:f}")),
    strings,
    st.binary(max_size=40).map(lambda raw: b64encode(raw).decode()),
    st.datetimes().map(lambda value: value.isoformat() + "Z"),
    st.builds(
        lambda kind, rest: b64encode(b"\1" + struct.pack("<I", kind) + rest), st.sampled_from([1, 3]), st.binary()
    )
    .map(bytes.decode)
    .flatmap(lambda wkb: st.none() | st.integers(0, 2**33).map(lambda srid: {"wkb": wkb, "srid": srid})),
    st.fixed_dictionaries(
        {"scale": st.integers(-2, 9), "value": st.binary(max_size=9).map(b64encode).map(bytes.decode)}
    ),
)
values = st.one_of(
    scalars,
    st.fixed_dictionaries(_parts),
    st.datetimes().map(lambda value: value.date().isoformat() + "Z"),
    st.times().map(lambda value: value.isoformat() + "Z"),
    st.lists(scalars, max_size=3),
    st.lists(st.lists(st.none() | st.integers(-(10**16), 10**16), max_size=2), max_size=2),
    st.binary(max_size=6).map(bytes.hex),
)
