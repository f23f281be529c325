"""Generated records at work: what instances become, what they refuse, and data of other schemas."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import struct
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

import fastavro
import pytest
from hypothesis import given

from cdcavro.avro.binary import check_payload
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.translation import translator
from cdcavro.errors import CdcAvroError, PayloadError, SchemaError, StructureError
from cdcavro.exact.jsontext import parse
from cdcavro.records import AvroRecord, Branch, Codec
from cdcavro.records.codegen import NamedSchema, generate
from support.generated_modules import RECORD_KINDS, load, module, one, parsed, root
from support.roundtrip import outcome
from support.schema_data import expected, is_same
from support.schema_pairs import pairs
from support.wire import array, enum, field, mapping, record

NAIVE = dt.datetime(2024, 1, 1, tzinfo=dt.UTC).replace(tzinfo=None)
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
TIME = {"type": "long", "logicalType": "time-micros"}
TIME_MILLIS = {"type": "int", "logicalType": "time-millis"}
DATE = {"type": "int", "logicalType": "date"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
FIXED = {"type": "fixed", "name": "Md5", "size": 2}
ZONE = dt.timezone(dt.timedelta(hours=8))


def assert_there_and_back(cls: Any, value: Any, text: str) -> None:
    """An instance comes back from Avro and from JSON, and its JSON is this."""
    instance = cls(a=value)
    again = cls.from_avro(instance.to_avro())
    assert again == instance
    assert repr(again) == repr(cls.from_json(instance.to_json()))
    assert type(again.a) is type(value)
    assert instance.to_json().decode() == text
    assert cls.from_json(text) == instance


@pytest.mark.parametrize("kind", RECORD_KINDS)
@pytest.mark.parametrize(
    ("declared", "value", "text"),
    [
        ("null", None, "null"),
        ("boolean", True, "true"),
        ("int", -(2**31), "-2147483648"),
        ("long", 2**63 - 1, "9223372036854775807"),
        ("float", 1.5, "1.5"),
        ("float", math.inf, '"Infinity"'),
        ("double", 0.1, "0.1"),
        ("double", 1e300, "1e+300"),
        ("double", -0.0, "-0.0"),
        ("double", -math.inf, '"-Infinity"'),
        ("bytes", b"\xff\x00", '"/wA="'),
        ("string", "é\n", '"é\\n"'),
        (DECIMAL, Decimal("-999.99"), '"-999.99"'),
        (DECIMAL, Decimal("1.20"), '"1.20"'),
        (DATE, dt.date(1, 1, 1), '"0001-01-01"'),
        (DATE, dt.date(9999, 12, 31), '"9999-12-31"'),
        (TIME, dt.time(23, 59, 59, 999_999), '"23:59:59.999999"'),
        (TIME_MILLIS, dt.time(1, 2, 3, 4000), '"01:02:03.004000"'),
        (MICROS, dt.datetime(2024, 2, 29, 12, 0, 0, 1, dt.UTC), '"2024-02-29T12:00:00.000001Z"'),
        (MILLIS, dt.datetime(1, 1, 1, tzinfo=dt.UTC), '"0001-01-01T00:00:00Z"'),
        (LOCAL, NAIVE.replace(year=9999, microsecond=999_999), '"9999-01-01T00:00:00.999999"'),
        ({"type": "long", "logicalType": "timestamp-nanos"}, 5, "5"),
        (array("long"), [1, 2], "[1,2]"),
        (mapping(["null", "string"]), {"x": None, "y": "z"}, '{"x":null,"y":"z"}'),
    ],
)
def test_values_are_of_their_python_type_and_come_back(kind, declared, value, text):
    """Through Avro and through JSON, whichever kind."""
    assert_there_and_back(one(declared, kind), value, f'{{"a":{text}}}')


def test_an_instant_is_the_same_in_any_zone():
    """It is read in UTC."""
    cls = one(MICROS)
    local = cls(a=dt.datetime(2024, 1, 1, 8, tzinfo=ZONE))
    assert cls.from_avro(local.to_avro()) == local
    assert local.to_json() == b'{"a":"2024-01-01T00:00:00Z"}'


def test_a_decimal_has_the_scale_of_its_type():
    """Fewer digits are filled up, as they are the same number."""
    cls = one(DECIMAL)
    assert str(cls.from_avro(cls(a=Decimal("1E+2")).to_avro()).a) == "100.00"


def test_nan_comes_back():
    """As text in JSON, which has no NaN."""
    cls = one("double")
    assert math.isnan(cls.from_avro(cls(a=math.nan).to_avro()).a)
    assert cls(a=math.nan).to_json() == b'{"a":"NaN"}'
    assert math.isnan(cls.from_json('{"a":"NaN"}').a)


@pytest.mark.parametrize(
    ("declared", "value", "reason"),
    [
        ("boolean", 1, "expected a bool, got int"),
        ("int", 2**31, "expected an integer of at most 32 bits, got one of 33"),
        ("long", -(2**63) - 1, "expected an integer of at most 64 bits, got one of 65"),
        ("int", True, "expected an integer of at most 32 bits, got bool"),
        ("float", 0.1, "expected a float of 32 bits, got 0.1, which needs 64"),
        ("float", 1e300, "expected a float of 32 bits, got 1e+300, which needs 64"),
        ("double", 1, "expected a float, got int"),
        ("string", "\ud800", "expected Unicode text, got a lone surrogate at character 0"),
        ("string", None, "expected a string, got None"),
        ("bytes", "x", "expected bytes, got str"),
        (DECIMAL, Decimal("1.234"), "expected decimal(5,2), got '1.234'"),
        (DECIMAL, Decimal(1000), "expected decimal(5,2), got '1000'"),
        (DECIMAL, Decimal("NaN"), "expected decimal(5,2), got 'NaN'"),
        (DECIMAL, Decimal("1E+999999"), "expected decimal(5,2), got '1E+999999'"),
        (DECIMAL, 1.5, "expected decimal(5,2), got float"),
        (DATE, NAIVE, "expected a date, got datetime"),
        (TIME, dt.time(1, tzinfo=dt.UTC), "expected a time without a zone, got time"),
        (TIME_MILLIS, dt.time(0, 0, 0, 1), "expected whole milliseconds, got 00:00:00.000001"),
        (MICROS, NAIVE, "expected a datetime with a zone, got 2024-01-01 00:00:00"),
        (
            LOCAL,
            dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
            "expected a datetime without a zone, got 2024-01-01 00:00:00+00:00",
        ),
        (array("int"), (1,), "expected a list, got tuple"),
        (array("null"), [None] * 100_001, "expected at most 100000 items without bytes, got 100001"),
        (mapping("int"), [], "expected a dict, got list"),
        (["null", "long"], "1", "expected NoneType or int, got str"),
    ],
)
def test_a_value_that_its_type_cannot_hold_is_refused(declared, value, reason):
    """Nothing is converted or rounded."""
    with pytest.raises(StructureError) as error:
        one(declared)(a=value).to_avro()
    assert str(error.value) == f"t: $.a: {reason}"


def test_the_path_of_a_fault_goes_down_to_it():
    """Through records, arrays and maps."""
    made = module(record(field("rows", array(record(field("m", mapping("int")), name="Row")))))
    with pytest.raises(StructureError) as error:
        made.R(rows=[made.Row(m={}), made.Row(m={"a b": "x"})]).to_avro()
    assert str(error.value) == 't: $.rows[1].m["a b"]: expected an integer of at most 32 bits, got str'


@pytest.mark.parametrize("kind", RECORD_KINDS)
def test_branches_of_a_union_are_told_apart_by_their_class(kind):
    """Records of one shape, an enum and a string, a fixed and bytes, an int and a long, two kinds of decimals."""
    text = [field("text", "string")]
    money = {"type": "fixed", "name": "Money", "size": 3, "logicalType": "decimal", "precision": 5, "scale": 2}
    a, b, e = record(*text, name="A"), record(*text, name="B"), enum("x", name="E")
    cls = one(["null", "int", "long", "float", "double", "string", e, a, b, "bytes", FIXED, money, array("int")], kind)
    made = cls.module
    values = [
        (0, None, "null"),
        (1, 5, '{"int":5}'),
        (2, made.LongBranch(5), '{"long":5}'),
        (3, 1.5, '{"float":1.5}'),
        (4, made.DoubleBranch(1.5), '{"double":1.5}'),
        (5, "x", '{"string":"x"}'),
        (6, made.E.x, '{"E":"x"}'),
        (7, made.A(text="x"), '{"A":{"text":"x"}}'),
        (8, made.B(text="x"), '{"B":{"text":"x"}}'),
        (9, b"ab", '{"bytes":"YWI="}'),
        (10, made.Md5(b"ab"), '{"Md5":"YWI="}'),
        (11, Decimal("1.20"), '{"Money":"1.20"}'),
        (12, [1], '{"array":[1]}'),
    ]
    for index, value, shown in values:
        assert cls(a=value).to_avro()[0] == index << 1
        assert_there_and_back(cls, value, f'{{"a":{shown}}}')


def test_two_decimals_in_a_union_have_two_classes():
    """The second one has a class of its own around it."""
    money = {"type": "fixed", "name": "Money", "size": 3, "logicalType": "decimal", "precision": 5, "scale": 2}
    cls = one([DECIMAL, money])
    value = cls.module.MoneyBranch(Decimal("1.20"))
    assert isinstance(value, Branch)
    assert_there_and_back(cls, value, '{"a":{"Money":"1.20"}}')
    assert_there_and_back(cls, Decimal("1.20"), '{"a":{"bytes":"1.20"}}')


@pytest.mark.parametrize(
    ("declared", "text", "sentence"),
    [
        ("int", "{}", "t: $.a: expected a member without a default, got none"),
        ("int", '{"a":1,"b":2}', "t: $.b: expected a field of the record, got another member"),
        ("int", '{"a":1.0}', "t: $.a: expected integer, got number"),
        ("int", '{"a":true}', "t: $.a: expected integer, got boolean"),
        ("int", '{"a":4294967296}', "t: $.a: expected an integer of at most 32 bits, got one of 34"),
        (
            "double",
            '{"a":0.10000000000000000001}',
            "t: $.a: expected a number that a double holds, got '0.10000000000000000001'",
        ),
        ("double", '{"a":1e999}', "t: $.a: expected a number that a double holds, got '1e999'"),
        ("bytes", '{"a":"AB="}', "t: $.a: expected base64, got 'AB='"),
        (DECIMAL, '{"a":1.20}', "t: $.a: expected string, got number"),
        (DECIMAL, '{"a":"1e2"}', "t: $.a: expected the digits of a decimal(5,2), got '1e2'"),
        (DATE, '{"a":"20240229"}', "t: $.a: expected a date, got '20240229'"),
        (MICROS, '{"a":"2024-02-29T00:00:00"}', "t: $.a: expected a datetime with a zone, got '2024-02-29T00:00:00'"),
        (
            LOCAL,
            '{"a":"2024-02-29T00:00:00Z"}',
            "t: $.a: expected a datetime without a zone, got 2024-02-29 00:00:00+00:00",
        ),
        (enum("x"), '{"a":"y"}', "t: $.a: expected a symbol of E, got 'y'"),
        (["int", "string"], '{"a":5}', "t: $.a: expected an object with the name of a branch, got number"),
        (["int", "string"], '{"a":{"long":5}}', "t: $.a: expected the name of a branch, got 'long'"),
        (FIXED, '{"a":"YWJj"}', "t: $.a: expected 2 bytes, got 3"),
        ("int", "[", "t: $: expected JSON, got text that ends too early, at character 1"),
    ],
)
def test_json_that_is_not_the_record_is_refused(declared, text, sentence):
    """With its path and what was expected."""
    with pytest.raises(CdcAvroError) as error:
        one(declared).from_json(text)
    assert str(error.value) == sentence


def test_a_double_takes_any_notation_of_a_number_that_it_holds():
    """The shortest digits and the exact expansion; the integers too."""
    cls = one("double")
    exact = "0.1000000000000000055511151231257827021181583404541015625"
    texts = ["1", "1.0", "1E0", "0.10", exact]
    assert [cls.from_json(f'{{"a":{text}}}').a for text in texts] == [1.0, 1.0, 1.0, 0.1, 0.1]


@pytest.mark.parametrize(
    ("declared", "payload", "sentence"),
    [
        ("string", b"\x04a", "t: $.a: expected 2 bytes, got 1 at byte 1, where the payload ends"),
        ("int", b"\x02\x00", "t: $: expected the end of the payload at byte 1, got 1 more"),
        (["null", "int"], b"\x05", "t: $.a: expected a branch from 0 to 1, got -3 at byte 1"),
        (DATE, b"\xfe\xff\xff\xff\x0f", "t: $.a: expected a date of the years 1 to 9999, got day 2147483647 of 1970"),
        (TIME, b"\x01", "t: $.a: expected a time of a day, got -1"),
        (
            MILLIS,
            b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "t: $.a: expected an instant of the years 1 to 9999, got 9223372036854775807",
        ),
        (DECIMAL, b"\x00", "t: $.a: expected decimal(5,2), got 0 bytes that are none"),
        (DECIMAL, b"\x06\x7f\xff\xff", "t: $.a: expected decimal(5,2), got 3 bytes that are none"),
        (mapping("int"), b"\x04\x02x\x00\x02x\x00\x00", "t: $.a.x: expected each name once, got 'x' twice"),
    ],
)
def test_payloads_that_are_none_are_refused(declared, payload, sentence):
    """Cut short, too long, out of range, or what Python has no value for."""
    with pytest.raises(PayloadError) as error:
        one(declared).from_avro(payload)
    assert str(error.value) == sentence


def test_data_of_an_older_schema_are_read_with_aliases_and_defaults():
    """A renamed record and field, a new field, a dropped one, a promoted one."""
    older = parsed(record(field("was", "int"), field("gone", array(record(field("x"), name="X"))), name="Old"))
    payload = root(module(older))(was=7, gone=[]).to_avro()
    newer = record(
        field("now", "double", aliases=["was"]), field("new", array("string"), default=["x"]), aliases=("Old",)
    )
    made = module(newer).R
    first, second = made.from_avro(payload, writer=older), made.from_avro(payload, writer=older)
    assert first == made(now=7.0, new=["x"])
    assert first.new is not second.new
    with pytest.raises(SchemaError):
        made.from_avro(payload, writer=parsed(record(field("other"), name="Old")))


@pytest.mark.parametrize(
    ("was", "now", "payload", "value"),
    [
        ("int", "long", b"\x0e", 7),
        ("int", "float", b"\x82\x80\x80\x10", 2.0**24),
        ("long", "double", b"\x0e", 7.0),
        ("float", "double", struct.pack("<f", 0.1), struct.unpack("<f", struct.pack("<f", 0.1))[0]),
        ("string", "bytes", b"\x04\xc3\xa9", b"\xc3\xa9"),
        ("long", ["null", "double"], b"\x0e", 7.0),
        (["null", "int"], "long", b"\x02\x0e", 7),
    ],
)
def test_what_the_specification_promotes_is_read(was, now, payload, value):
    """As the Python type of the reader's."""
    made = one(now).from_avro(payload, writer=parsed(record(field("a", was))))
    assert (made.a, type(made.a)) == (value, type(value))


def test_the_default_of_an_enum_is_read_for_a_symbol_that_it_lacks():
    """As Avro Java does from 1.9 on."""
    made = one({**enum("A", "Z"), "default": "Z"})
    symbols = [
        made.from_avro(payload, writer=parsed(record(field("a", enum("A", "B"))))).a for payload in (b"\0", b"\2")
    ]
    assert symbols == ["A", "Z"]


def test_what_a_writer_has_and_the_reader_has_not_is_an_error_of_its_payload():
    """A branch, a symbol, bytes that are no text."""
    for was, now, payload, reason in (
        (["null", "int"], "int", b"\0", "expected a branch that the reader's schema has, got 'int cannot read null'"),
        (enum("A", "B"), enum("A"), b"\2", "expected a symbol of E, got another before byte 1"),
        (["null", "bytes"], "string", b"\2\2a", "expected a string, got bytes: nothing says that they are text"),
    ):
        with pytest.raises(PayloadError) as error:
            one(now).from_avro(payload, writer=parsed(record(field("a", was))))
        assert str(error.value) == f"t: $.a: {reason}"


@pytest.mark.parametrize(
    ("was", "now", "payload", "value"),
    [
        ("bytes", "string", b"\x04\xc3\xa9", "é"),
        ("long", MICROS, b"\x02", dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC)),
        ("int", DATE, b"\x02", dt.date(1970, 1, 2)),
        ("bytes", DECIMAL, b"\x02\x7b", Decimal("1.23")),
    ],
)
def test_bytes_are_read_as_text_and_numbers_as_instants_only_if_the_caller_says_so(was, now, payload, value):
    """Nothing in the payload says that they are."""
    writer = parsed(record(field("a", was)))
    with pytest.raises(PayloadError, match=": nothing says that "):
        one(now).from_avro(payload, writer=writer)
    assert one(now).from_avro(payload, writer=writer, reinterpret=True).a == value


def test_what_is_reinterpreted_is_checked():
    """Bytes that are no text, a day after the last."""
    for was, now, payload, reason in (
        ("bytes", "string", b"\2\xff", "expected UTF-8, got byte 0xff"),
        ("int", DATE, b"\xfe\xff\xff\xff\x0f", "expected a date of the years 1 to 9999, got day 2147483647 of 1970"),
        (DECIMAL, "string", b"\x02\x7b", "expected a string, got a decimal(5,2), whose bytes are no text"),
    ):
        with pytest.raises(PayloadError) as error:
            one(now).from_avro(payload, writer=parsed(record(field("a", was))), reinterpret=True)
        assert str(error.value) == f"t: $.a: {reason}"


def test_an_instant_before_the_year_1_in_utc_is_not_written():
    """Nobody could read it."""
    early = dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=8)))
    with pytest.raises(StructureError, match="expected an instant of the years 1 to 9999, got '0001-01-01 00:00:00"):
        one(MICROS)(a=early).to_avro()


@pytest.mark.parametrize(
    ("passed", "payload", "sentence"),
    [
        ("string", b"\x04a", "t: $.gone: expected 2 bytes, got 1 at byte 1, where the payload ends"),
        (
            array(record(field("x", "string"), name="X")),
            b"\x04\x02a\x04b",
            "t: $.gone[1].x: expected 2 bytes, got 1 at byte 4, where the payload ends",
        ),
        (
            mapping(["null", "boolean"]),
            b"\x02\x02k\x02\x02",
            "t: $.gone.k: expected a boolean, 0 or 1, got 2 at byte 4",
        ),
        (mapping("null"), b"\x04\x02k\x02k\x00\x00", "t: $.gone.k: expected each name once, got 'k' twice"),
        (enum("A"), b"\x02", "t: $.gone: expected a symbol from 0 to 0, got 1 at byte 1"),
    ],
)
def test_a_field_that_the_reader_has_not_is_checked_as_it_is_passed_by(passed, payload, sentence):
    """Items are told by number, entries of a map and fields by name."""
    older = parsed(record(field("gone", passed), field("a")))
    with pytest.raises(PayloadError) as error:
        one("int").from_avro(payload, writer=older)
    assert str(error.value) == sentence


def test_a_fixed_goes_into_the_branch_of_its_name_before_one_that_has_it_as_an_alias():
    """As schema resolution says."""
    other = FIXED | {"name": "Sha", "aliases": ["Md5", "Older"]}
    cls = one([other, FIXED])
    for name, wanted in (("Md5", "Md5"), ("Older", "Sha")):
        made = cls.from_avro(b"ab", writer=parsed(record(field("a", FIXED | {"name": name}))))
        assert type(made.a).__name__ == wanted


def test_a_decimal_of_more_than_1000_digits_stays_bytes():
    """Whatever its precision, which may be absurd."""
    for precision in (1001, 10**18):
        cls = one({"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2})
        assert_there_and_back(cls, b"\x78", '{"a":"eA=="}')
    most = one({"type": "bytes", "logicalType": "decimal", "precision": 1000, "scale": 1000})
    value = Decimal("-0." + "9" * 1000)
    assert_there_and_back(most, value, f'{{"a":"{value}"}}')


@pytest.mark.parametrize("kind", RECORD_KINDS)
def test_defaults_are_those_of_the_schema_and_never_shared(kind):
    """In the class, in JSON that lacks the member, and in data of an older schema."""
    inner = record(field("x", default=3), field("y", array("int")), name="Inner")
    declared = record(
        field("text", "string", default='"""\n\u202e'),
        field("long_text", "string", default="x" * 300),
        field("raw", "bytes", default="\u00ff\u0000"),
        field("half", "float", default=0.1),
        field("price", DECIMAL, default="\u0000\u0078"),
        field("day", DATE, default=0),
        field("clock", TIME, default=1),
        field("at", MICROS, default=-1),
        field("e", enum("A", "None"), default="None"),
        field("hash", FIXED, default="ab"),
        field("items", array("int"), default=[1, 2]),
        field("many", array("int"), default=list(range(100))),
        field("none", array("int"), default=[]),
        field("map", mapping("string"), default={'"': "\\"}),
        field("inner", inner, default={"y": [5]}),
        field("u", ["string", "null"], default="s"),
    )
    made = module(declared, kind)
    cls = made.R
    first, second = cls(), cls()
    assert first == second == cls.from_json("{}") == cls.from_avro(b"", writer=parsed(record()))
    assert first.half == struct.unpack("<f", struct.pack("<f", 0.1))[0]
    assert (first.text, first.raw, first.price, first.day) == (
        '"""\n\u202e',
        b"\xff\0",
        Decimal("1.20"),
        dt.date(1970, 1, 1),
    )
    assert first.at == dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC)
    assert first.e is made.E.None_
    assert (first.items, first.map, first.inner) == ([1, 2], {'"': "\\"}, made.Inner(x=3, y=[5]))
    assert first.items is not second.items
    assert first.inner is not second.inner
    assert cls.from_avro(first.to_avro()) == first


def test_a_class_derived_from_a_record_reads_itself():
    """So that methods can be added."""
    cls = one("int")

    class Mine(cls):
        def double(self) -> int:
            return 2 * self.a

    assert Mine.from_avro(cls(a=4).to_avro()).double() == 8
    assert Mine.from_json('{"a":4}').to_avro() == cls(a=4).to_avro()


def test_classes_of_another_schema_are_refused():
    """The codec compares them when it is first used."""
    cls = one("int")
    other = type("Other", (AvroRecord,), {})
    for classes in ([], [cls, cls], [root(module(record()))]):
        Codec(json.dumps(record(field("a"))), [*classes, other][: len(classes)] or [other], name="t")
        with pytest.raises(SchemaError):
            (classes or [other])[0].from_avro(b"\0")


def plain(value: Any, wanted: Any) -> Any:
    """Return an instance as the plain values that the tests of schemas expect."""
    if isinstance(value, Branch):
        return plain(value.value, wanted)
    if isinstance(value, AvroRecord):
        names = type(value).__dataclass_fields__
        return {name: plain(getattr(value, name), wanted[name]) for name in names}
    if isinstance(value, list):
        return [plain(item, other) for item, other in zip(value, wanted, strict=True)]
    if isinstance(value, dict):
        return {name: plain(item, wanted[name]) for name, item in value.items()}
    if isinstance(value, bytes):
        return bytes(value)
    if type(wanted).__name__ == "UUID":
        return type(wanted)(value)
    return str(value) if isinstance(value, str) else value


@pytest.mark.slow
@given(pairs())
def test_data_of_random_schemas_are_read_as_resolution_says(pair):
    """A schema's own data come back byte for byte; those of another schema as the steps of resolution say."""
    own, made = (
        parse_schema(pair.writer),
        root(load(generate([NamedSchema("t", parse_schema(pair.writer))], "dataclass"))),
    )
    for _, payload in pair.data:
        fault = outcome(PayloadError, check_payload, payload, own)
        if fault is not None:
            # What is written for a date may lie beyond those of Python, and a decimal have a byte too many.
            assert (
                str(outcome(PayloadError, made.from_avro, payload)).partition(": ")[2] == str(fault).partition(": ")[2]
            )
            continue
        instance = made.from_avro(payload)
        assert made.from_json(instance.to_json()) == instance
        assert made.from_avro(instance.to_avro()) == instance
        assert parse(instance.to_json()).keys() == {one.name for one in own.root.fields}
        if pair.step is not None:
            reader = root(load(generate([NamedSchema("t", parse_schema(pair.reader))], "dataclass")))
            wanted = expected(pair.step, next(datum for datum, other in pair.data if other is payload))
            assert is_same(wanted, plain(reader.from_avro(payload, writer=own), wanted))


@given(pairs())
def test_a_class_and_a_translation_accept_the_same_payloads(pair):
    """And the class reads the translation as it reads the payload, whether or not all data can be read."""
    writer, reader = parse_schema(pair.writer), parse_schema(pair.reader)
    source = outcome(SchemaError, generate, [NamedSchema("t", reader)], "dataclass")
    if isinstance(source, SchemaError):
        # Avro Java takes some defaults that are no values; no class has them.
        assert str(source).endswith("the default is no value of its type")
        return
    made = root(load(source))

    def read(payload, written, reinterpret):
        return made.from_avro(payload, writer=written, reinterpret=reinterpret)

    def translate(payload, reinterpret):
        return made.from_avro(translator(writer, reader, reinterpret=reinterpret)(payload))

    for _, payload in pair.data:
        for reinterpret in (False, True):
            by_class = outcome(CdcAvroError, read, payload, writer, reinterpret)
            by_translation = outcome(CdcAvroError, translate, payload, reinterpret)
            if isinstance(by_class, CdcAvroError):
                assert str(by_class).partition(": ")[2] == str(by_translation).partition(": ")[2]
            else:
                assert by_class == by_translation


@pytest.mark.skipif(find_spec("pydantic") is None, reason="needs pydantic")
@pytest.mark.parametrize("value", [2**63, 10**30, Decimal("1.20"), Decimal(10**20)])
def test_no_model_makes_a_double_of_another_number(value):
    """It would be rounded."""
    made = module(
        {
            "type": "record",
            "name": "R",
            "fields": [{"name": "d", "type": "double"}, {"name": "u", "type": ["null", "long", "double", "string"]}],
        },
        "pydantic",
    )
    assert made.R(d=1.5, u=1).u == 1
    for members in ({"d": value, "u": None}, {"d": 1.5, "u": value}):
        with pytest.raises(ValueError, match="instance of float"):
            made.R(**members)


NODE = record(
    field("v", "long"),
    field("next", ["null", "Node"], default=None),
    field("kids", array("Node"), default=[]),
    field("other", ["null", record(field("back", ["null", "Node", "string", "bytes"]), name="Other")], default=None),
    field("named", mapping(["null", "Other"]), default={}),
    name="Node",
)


@pytest.mark.parametrize("kind", RECORD_KINDS)
def test_records_within_themselves(kind):
    """Go to Avro and JSON and back, up to 128 records, lists and dicts in each other; fastavro reads them too."""
    made = module(NODE, kind)
    node, other = made.Node, made.Other
    value = node(
        v=1, next=node(v=2, kids=[node(v=3)]), other=other(back=node(v=4)), named={"a": None, "b": other(back="x")}
    )
    payload = value.to_avro()
    assert node.from_avro(payload) == value
    assert node.from_json(value.to_json()) == value
    read = fastavro.schemaless_reader(io.BytesIO(payload), fastavro.parse_schema(NODE))
    assert read["other"] == {"back": {"v": 4, "next": None, "kids": [], "other": None, "named": {}}}
    assert read["named"] == {"a": None, "b": {"back": "x"}}
    assert other.from_avro(other(back=value).to_avro()) == other(back=value)
    chain = node(v=0)
    for v in range(1, 128):
        chain = node(v=v, next=chain)
    assert node.from_avro(chain.to_avro()) == chain
    with pytest.raises(StructureError, match="expected at most 128 records, arrays and maps in each other, got more"):
        node(v=128, next=chain).to_avro()
    with pytest.raises(PayloadError, match="expected at most 128 records, arrays and maps in each other, got more"):
        node.from_avro(b"\x02\x02" + chain.to_avro() + b"\0" * 3)
    value.next = value
    with pytest.raises(StructureError, match="in each other"):
        value.to_avro()


@pytest.mark.parametrize("kind", RECORD_KINDS)
def test_data_of_another_record_within_itself_are_read(kind):
    """By aliases and promotions, with the reader's defaults at each level."""
    node = module(NODE, kind).Node
    old = parsed(record(field("number", "int"), field("next", ["null", "Old"]), name="Old"))
    new = module(
        record(
            field("v", "long", aliases=["number"]),
            field("next", ["null", "New"]),
            field("w", default=7),
            name="New",
            aliases=["Old"],
        ),
        kind,
    ).New
    read = new.from_avro(b"\x02\x02\x04\0", writer=old)
    assert read == new(v=1, next=new(v=2, next=None, w=7), w=7)
    assert node.from_avro(node(v=1).to_avro(), writer=parsed(NODE)) == node(v=1)


@pytest.mark.parametrize("kind", RECORD_KINDS)
def test_items_without_bytes_come_back(kind):
    """What is read is written again, whatever stands behind it, up to a number."""
    cls = one(array("null"), kind)
    for count in (0, 1, 1000, 100_000):
        value = cls(a=[None] * count)
        payload = value.to_avro()
        assert cls.from_avro(payload) == value
        check_payload(payload, cls.module.CODEC.schema)
    with pytest.raises(StructureError, match="at most 100000 items without bytes"):
        cls(a=[None] * 100_001).to_avro()
    with pytest.raises(PayloadError, match="at most 100000 items without bytes"):
        cls.from_avro(b"\xfe\xff\xff\xff\x0f\0")


@pytest.mark.parametrize("kind", RECORD_KINDS)
def test_what_only_avro_java_reads_has_classes(kind):
    """Enums and unions of which there are no values, defaults of later branches, and numbers that JSON lacks."""
    made = module(
        record(
            field("e", ["null", enum(name="E")], default=None),
            field("u", ["int", "string"], default="x"),
            field("n", "double", default="NaN"),
            field("größe", "int", default=7),
            field("nothing", ["null", record(field("never", []), name="S")], default=None),
        ),
        kind,
    )
    value = made.R()
    assert (value.e, value.u, value.nothing) == (None, "x", None)
    assert math.isnan(value.n)
    assert repr(made.R.from_avro(value.to_avro())) == repr(value)
    assert b'"gr\xc3\xb6\xc3\x9fe":7' in value.to_json()
    with pytest.raises(StructureError):
        made.R(nothing=made.S(never=None)).to_avro()
