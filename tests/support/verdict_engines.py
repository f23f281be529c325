"""Avro Java and Spark behind py4j, as readers of payloads."""

from __future__ import annotations

import datetime as dt
import json
import math
import uuid
from decimal import Decimal

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Row
from pyspark.sql.avro.functions import from_avro

from support.schema_data import is_same
from support.schema_pairs import UnreadableError

CONVERSIONS = (
    "Conversions$DecimalConversion",
    "Conversions$UUIDConversion",
    "data.TimeConversions$DateConversion",
    "data.TimeConversions$TimeMillisConversion",
    "data.TimeConversions$TimeMicrosConversion",
    "data.TimeConversions$TimestampMillisConversion",
    "data.TimeConversions$TimestampMicrosConversion",
    "data.TimeConversions$LocalTimestampMillisConversion",
    "data.TimeConversions$LocalTimestampMicrosConversion",
)


class Java:
    """Avro Java behind py4j."""

    def __init__(self, jvm) -> None:
        self._avro = jvm.org.apache.avro
        self._data = self._avro.generic.GenericData()
        self._decoders = self._avro.io.DecoderFactory.get()
        for name in CONVERSIONS:
            found = jvm.java.lang.Class.forName(f"org.apache.avro.{name}")
            self._data.addLogicalTypeConversion(found.getDeclaredConstructor(None).newInstance(None))

    def reader(self, writer: str, reader: str):
        """Make what reads the payloads of one schema with another, as JSON."""
        try:
            schemas = [self._avro.Schema.Parser().parse(one) for one in (writer, reader)]
        except (Py4JJavaError, PySparkException) as error:
            raise UnreadableError from error
        datum_reader = self._avro.generic.GenericDatumReader(*schemas, self._data)

        def read(payload: bytes):
            try:
                datum = datum_reader.read(None, self._decoders.binaryDecoder(payload, None))
                return json.loads(self._data.toString(datum), parse_float=Decimal)
            except (Py4JJavaError, PySparkException) as error:
                raise UnreadableError from error

        return read


def agrees(value, shown) -> bool:
    """Return whether a value is what Avro Java shows as JSON."""
    match value:
        case dict():
            return (
                isinstance(shown, dict)
                and value.keys() == shown.keys()
                and all(agrees(value[k], shown[k]) for k in value)
            )
        case list():
            return isinstance(shown, list) and len(value) == len(shown) and all(map(agrees, value, shown))
        case bytes():
            if isinstance(shown, Decimal | int):
                return is_same(value, Decimal(shown))
            return shown in (value.decode("latin-1"), [byte - 256 if byte > 127 else byte for byte in value])
        case dt.date() | dt.time():
            return isinstance(shown, str) and _instant(type(value), shown) == value
        case uuid.UUID():
            return shown == str(value)
        case Decimal():
            return isinstance(shown, Decimal | int) and value.as_tuple() == Decimal(shown).as_tuple()
        case float():
            if isinstance(shown, str):
                return shown in ("NaN", "Infinity", "-Infinity") and str(value).title() == shown[:4].title().replace(
                    "Infi", "Inf"
                )
            return isinstance(shown, Decimal | int) and math.isclose(value, float(shown), rel_tol=1e-6)
        case _:
            return type(value) is type(shown) and value == shown


def _instant(kind, text):
    try:
        return kind.fromisoformat(text)
    except ValueError:
        return None


def tried(read, payload):
    """Return what an engine reads, or the class of its error."""
    try:
        return read(payload)
    except UnreadableError:
        return UnreadableError


class Spark:
    """Spark's `from_avro`, which reads the payloads of several pairs of schemas at once."""

    def __init__(self, session) -> None:
        self._session = session

    def read(self, wanted):
        """Return what each payload gives, or `UnreadableError`; `wanted` are of writer, reader and payload."""
        try:
            return self._read(wanted)
        except (Py4JJavaError, PySparkException):
            if len(wanted) == 1:
                return [UnreadableError]
            middle = len(wanted) // 2
            return self.read(wanted[:middle]) + self.read(wanted[middle:])

    def _read(self, wanted):
        names = [f"p{i}" for i in range(len(wanted))]
        frame = self._session.createDataFrame(
            [tuple(bytearray(payload) for _, _, payload in wanted)], ", ".join(f"{name} binary" for name in names)
        )
        columns = [
            from_avro(name, writer, {"avroSchema": reader}).alias(name)
            for name, (writer, reader, _) in zip(names, wanted, strict=True)
        ]
        return list(frame.select(*columns).first())


def spark_agrees(value, shown) -> bool:
    """Return whether a value is what Spark gives for it: a union is a struct with one member that is not null."""
    if isinstance(shown, Row):
        fields = shown.asDict()
        if isinstance(value, dict) and value.keys() == fields.keys():
            return all(spark_agrees(value[name], fields[name]) for name in value)
        given = [one for one in fields.values() if one is not None]
        return len(given) == 1 and spark_agrees(value, given[0])
    match value:
        case list():
            return isinstance(shown, list) and len(value) == len(shown) and all(map(spark_agrees, value, shown))
        case dict():
            is_map = isinstance(shown, dict) and value.keys() == shown.keys()
            return is_map and all(spark_agrees(value[name], shown[name]) for name in value)
        case bytes():
            return is_same(value, shown) if isinstance(shown, Decimal) else shown == value
        case dt.datetime():
            local = value if value.tzinfo is None else value.astimezone().replace(tzinfo=None)
            return shown == local
        case dt.time():
            midnight = dt.datetime.combine(dt.date.min, dt.time.min)
            micros = (dt.datetime.combine(dt.date.min, value) - midnight) // dt.timedelta(microseconds=1)
            return shown in (micros, micros // 1000) if isinstance(shown, int) else shown == value
        case uuid.UUID():
            return shown == str(value)
        case float():
            return isinstance(shown, float) and is_same(value, shown)
        case _:
            return is_same(value, shown)
