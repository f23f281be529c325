"""Rows of Arrow batches as typed payloads: where that is exact, and an error that names the column where it is not."""

from __future__ import annotations

import datetime as dt
import json
from random import Random

import pyarrow as pa
import pytest

from cdcavro.arrow import arrow_schema, from_arrow, to_arrow
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.types import recursion
from cdcavro.errors import MisfitError, SchemaError
from cdcavro.table.table_schema import TableSchema
from support.arrow_trial import listed
from support.schema_data import cover, write
from support.schema_pairs import Maker
from support.shop_tables import shop
from support.typed import table
from support.typed import write as row_payload
from support.wide_pairs import WideMaker
from support.wire import array, enum, field, mapping, record

ODD = table("id|int", "we ird|varchar(9)", "n|decimal(10,2)", "at|datetime", "d|double")
ROW = {"id": "1", "we ird": "é", "n": "-1.20", "at": "2024-02-29 12:00:00", "d": "0.5"}


def foreign(*fields):
    """Return the version of a table of someone else's, with these fields."""
    return TableSchema(parse_schema(json.dumps(record(*fields, name="Row"))))


def changed(batch, **columns):
    """Return a batch with other columns in place of its own, or beside them."""
    return pa.RecordBatch.from_pydict(dict(zip(batch.schema.names, batch.columns, strict=True)) | columns)


@pytest.mark.parametrize("producer", ["canal", "debezium"])
@pytest.mark.parametrize("part", ["envelope", "key"])
def test_payloads_of_a_real_database_come_back_byte_for_byte(producer, part):
    """Those of each version, under that version; where older columns were filled in, they are there twice."""
    for schemas in shop(producer)[0].tables:
        for version in schemas.versions:
            typed = [one for one in shop(producer)[1] if one.schema is version]
            if not typed or (part == "key" and version.key is None):
                continue
            payloads = [one.payload if part == "envelope" else one.key for one in typed if one.key or part != "key"]
            assert from_arrow(to_arrow(payloads, version, part=part), version, part=part).to_pylist() == payloads


@pytest.mark.parametrize("seed", range(150))
def test_data_of_random_schemas_come_back(seed):
    """Also unions of several branches, maps in arrays, symbols, and decimals in longer bytes than they need."""
    random = Random(seed)
    try:
        schema = parse_schema(json.dumps(random.choice((Maker, WideMaker))(random).schema()))
        own = TableSchema(schema)
        arrow_schema(own, part="row")
    except SchemaError:
        return
    if recursion(schema.root) is None:
        batch = to_arrow([write(schema.root, datum, random) for datum in cover(schema.root, random)], own, part="row")
        back = to_arrow(from_arrow(batch, own, part="row"), own, part="row")
        assert listed(back) == listed(batch)


def test_other_types_of_the_same_values_are_taken():
    """Wider and narrower ones, dictionaries, nulls without a type, finer units, any order, and a default for none."""
    (payload,) = from_arrow(to_arrow([row_payload(ODD, ROW)], ODD, part="row"), ODD, part="row").to_pylist()
    moment = dt.datetime(2024, 2, 29, 12)  # noqa: DTZ001
    columns = {
        "at": pa.array([moment], pa.timestamp("ns")),
        "d": pa.array([0.5], pa.float32()),
        "id": pa.array([1], pa.int64()),
        "n": pa.array(["-1.2"]).cast(pa.decimal128(3, 1)),
        "we ird": pa.array(["é"]).dictionary_encode(),
    }
    assert from_arrow(pa.RecordBatch.from_pydict(columns), ODD, part="row").to_pylist() == [payload]
    columns["we ird"] = pa.nulls(1)
    (nothing,) = from_arrow(pa.RecordBatch.from_pydict(columns), ODD, part="row").to_pylist()
    assert nothing == row_payload(ODD, ROW | {"we ird": None})


@pytest.mark.parametrize(
    ("name", "column", "sentence"),
    [
        ("id", pa.array([2**31]), "$.id: expected int32, exactly, got int64: Integer value 2147483648 not in range"),
        ("id", pa.array(["1"]), "$.id: expected int32, got string"),
        ("id", pa.array([1.0]), "$.id: expected int32, got double"),
        ("n", pa.array(["1.234"]).cast(pa.decimal128(5, 3)), "$.n: expected decimal128(10, 2), exactly, got decimal"),
        ("we ird", pa.array([b"x"]), '$["we ird"]: expected string, got binary'),
        ("at", pa.array([1], pa.timestamp("us", "UTC")), "$.at: expected timestamp[us], got timestamp[us, tz=UTC]"),
        ("at", pa.array([1], pa.timestamp("ns")), "$.at: expected timestamp[us], exactly, got timestamp[ns]: Casting"),
        ("at", pa.array([2**62], pa.timestamp("us")), "$[0].at: expected an instant of the years 1 to 9999, got 4611"),
        ("no", pa.array([1]), "$.no: expected columns of the version, got one that is none of them"),
        ("absent", pa.array([[None]], pa.list_(pa.string())), "$.absent: expected items that are not null, got null"),
        ("absent", pa.array(["x"]), "$.absent: expected list<item: string>, got string"),
        ("unparsed", pa.nulls(1), "$.unparsed: expected map<string, string>, got null"),
        ("unparsed", pa.array([None], pa.map_(pa.string(), pa.string())), "$.unparsed: expected a value in every row"),
        ("unparsed", pa.array([[("a", "x"), ("a", "y")]], pa.map_(pa.string(), pa.string())), "$[0].unparsed.a: exp"),
    ],
)
def test_what_is_not_exact_names_the_column(name, column, sentence):
    """A value that the type cannot have, another kind of value, an unknown column, nulls where none may be."""
    batch = to_arrow([row_payload(ODD, ROW)], ODD, part="row")
    with pytest.raises(MisfitError) as caught:
        from_arrow(changed(batch, **{name: column}), ODD, part="row")
    assert str(caught.value).startswith(f"message: {sentence}")


def test_columns_that_have_no_default_must_be_there():
    """And so must symbols, fixed sizes, and one member of a union; structs are structs."""
    kinds = foreign(
        field("e", enum("A", "B")),
        field("f", {"type": "fixed", "name": "F", "size": 2}),
        field("u", ["int", "string"]),
        field("r", record(field("x"), name="Inner")),
        field("m", mapping("int")),
        field("a", array("int")),
    )
    member = {"member0": 1, "member1": None}
    good = {"e": "A", "f": b"ab", "u": member, "r": {"x": 1}, "m": [("k", 1)], "a": [1]}
    schema = arrow_schema(kinds, part="row")

    def payload(**other):
        return from_arrow(pa.RecordBatch.from_pylist([good | other], schema), kinds, part="row").to_pylist()

    assert payload() == [b"\x00ab\x00\x02\x02\x02\x02k\x02\x00\x02\x02\x00"]
    listed_pairs = pa.array([[{"key": "k", "value": 1}]])
    batch = pa.RecordBatch.from_pylist([good], schema)
    with_list = changed(batch, m=listed_pairs)
    assert from_arrow(with_list, kinds, part="row").to_pylist() == payload()
    for other, sentence in (
        ({"e": "C"}, "$.e: expected one of A, B, got 'C'"),
        ({"e": None}, "$.e: expected a value in every row, got null"),
        ({"f": b"abc"}, "$.f: expected 2 bytes, got 3"),
        ({"u": {"member0": 1, "member1": "x"}}, "$.u: expected one member that is not null, got 2"),
    ):
        with pytest.raises(MisfitError) as caught:
            payload(**other)
        assert str(caught.value) == f"message: {sentence}"
    for other_batch, sentence in (
        (batch.select(["f", "u", "r", "m", "a"]), "$.e: expected a column, got none"),
        (changed(batch, r=pa.array([1])), "$.r: expected struct<x: int32>, got int64"),
        (changed(batch, m=pa.array([[1]])), "$.m: expected map<string, int32>, got a list of int64"),
        (
            pa.RecordBatch.from_arrays([*batch.columns, batch["e"]], [*batch.schema.names, "e"]),
            "$.e: expected columns of the version, got another of that name",
        ),
    ):
        with pytest.raises(MisfitError) as caught:
            from_arrow(other_batch, kinds, part="row")
        assert str(caught.value) == f"message: {sentence}"


def test_a_batch_with_text_that_is_none_is_refused():
    """Arrow does not check the bytes of texts by itself."""
    text = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    with pytest.raises(MisfitError, match=r"expected a valid batch, got .*UTF8"):
        from_arrow(pa.RecordBatch.from_pydict({"we ird": text}), ODD, part="row")


def test_a_table_of_arrows_is_taken_as_one_batch():
    """Of any number of batches, none among them."""
    rows = [row_payload(ODD, ROW | {"id": str(i)}) for i in range(5)]
    batch = to_arrow(rows, ODD, part="row")
    whole = pa.Table.from_batches([batch[:2], batch[2:2], batch[2:]])
    assert from_arrow(whole, ODD, part="row").to_pylist() == rows
    assert from_arrow(batch.schema.empty_table(), ODD, part="row").to_pylist() == []
    coded = [
        pa.Table.from_batches([one]).set_column(1, "we ird", pa.array([text]).dictionary_encode())
        for one, text in zip((batch[:1], batch[1:2]), ("é", "x"), strict=True)
    ]
    texts = to_arrow(from_arrow(pa.concat_tables(coded), ODD, part="row"), ODD, part="row")["we ird"]
    assert texts.to_pylist() == ["é", "x"]
    wrong = pa.Table.from_batches([batch]).set_column(0, "id", pa.array([2**31] * 5))
    with pytest.raises(MisfitError, match=r"^message: \$\.id: expected int32, exactly, got int64"):
        from_arrow(wrong, ODD, part="row")


def test_what_is_no_batch_is_said():
    """Arrays of structs or lists are none, nor are lists of rows; in a column, they do not fit."""
    batch = to_arrow([row_payload(ODD, ROW)], ODD, part="row")
    for rows, name in (
        (batch.to_struct_array(), "StructArray"),
        (pa.array([[1]]), "ListArray"),
        (batch.to_pylist(), "list"),
        (None, "NoneType"),
    ):
        with pytest.raises(TypeError, match=f"^rows are a RecordBatch or a Table of pyarrow's, not {name}$"):
            from_arrow(rows, ODD, part="row")
    for column, kind in ((pa.array([[1]]), "list<item: int64>"), (pa.array([{"a": 1}]), "struct<a: int64>")):
        with pytest.raises(MisfitError) as caught:
            from_arrow(changed(batch, id=column), ODD, part="row")
        assert str(caught.value) == f"message: $.id: expected int32, got {kind}"
