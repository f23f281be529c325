"""Typed payloads as Arrow batches: of all versions under the true names of one, by the engine and without it."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from array import array as array_of
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cdcavro.arrow import arrow_schema, from_arrow, layout, record_batches, to_arrow
from cdcavro.arrow.arrays import blank, slices_of, take_pool
from cdcavro.arrow.record_batches import read_batch, read_exactly, reading_for, reading_of
from cdcavro.avro.schema import parse_schema
from cdcavro.engine.machine import COMPILED
from cdcavro.errors import PayloadError, SchemaError
from cdcavro.table.evolution.evolve import evolve
from cdcavro.table.table_schema import TableSchema
from support.arrow_trial import binary, same_batch, trial
from support.bounds_trial import long
from support.schema_data import Branch, write
from support.shop_tables import Unparsed, filled, moved, shop
from support.typed import table
from support.typed import write as row_payload
from support.wire import array, enum, field, mapping, record

ODD = table("id|int", "we ird|varchar(9)", "n|decimal(10,2)", key=("id",))


def how_to_read(declared):
    """Return a schema, and how it is read."""
    schema = parse_schema(json.dumps(declared))
    return schema, reading_of(schema, {})


@pytest.mark.parametrize("producer", ["canal", "debezium"])
def test_the_tables_of_a_real_database_are_the_same_as_fastavro_reads_them(producer):
    """Every change of every version, under the newest, with the values of older columns where they are exact."""
    for schemas in shop(producer)[0].tables:
        typed = [one for one in shop(producer)[1] if one.table is schemas]
        batch = to_arrow([one.payload for one in typed], schemas, [one.schema.version for one in typed])
        batch.validate(full=True)
        assert batch.schema == arrow_schema(schemas.schema)
        rows = batch.to_pylist()
        wanted = [filled(moved(one), schemas.schema) for one in typed]
        assert [(row["op"], row["source"]) for row in rows] == [(one.op, one.source) for one in wanted]
        for image in ("before", "after"):
            shown = [row[image] for row in rows]
            assert [as_read(row) for row in shown] == [getattr(one, image) for one in wanted]


def as_read(row):
    """Return an image as `moved` has it."""
    if row is None:
        return None
    texts = dict(row.pop("unparsed"))
    assert row.pop("absent") == []
    return row | {name: Unparsed(text) for name, text in texts.items()}


@pytest.mark.parametrize("producer", ["canal", "debezium"])
@pytest.mark.parametrize("part", ["envelope", "key"])
def test_the_engine_makes_the_arrays_of_the_exact_way(producer, part, monkeypatch):
    """Whole batches of a real database's tables, under the newest version and under the first."""
    for schemas in shop(producer)[0].tables:
        typed = [one for one in shop(producer)[1] if one.table is schemas]
        if part == "key" and any(one.key is None for one in typed):
            continue
        payloads = [one.payload if part == "envelope" else one.key for one in typed]
        arguments = (payloads, schemas, [one.schema.version for one in typed])
        made = to_arrow(*arguments, part=part)
        with monkeypatch.context() as patched:
            patched.setattr(record_batches, "COMPILED", False)
            assert made.equals(to_arrow(*arguments, part=part))


def test_random_schemas_and_damaged_payloads_are_read_alike():
    """What is read is what was written, and the engine takes nothing that the exact way does not."""
    outcomes = trial(400, 17)
    assert outcomes["left"] == 0
    assert outcomes["read"] > 20 < outcomes["refused"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_many_random_schemas_are_read_alike():
    """The same with more of them."""
    assert trial(8_000, 3)["left"] == 0


def test_true_names_and_types_of_columns():
    """A name that Avro cannot hold is that of the table; a row is null where there is no payload."""
    rows = [{"id": "1", "we ird": "é", "n": "1.20"}, {"id": "2", "n": "-0.05"}]
    batch = to_arrow([row_payload(ODD, row) for row in rows] + [None], ODD, part="row")
    assert batch.schema.field("we ird").type == pa.string()
    assert batch.to_pylist() == [
        {"id": 1, "we ird": "é", "n": Decimal("1.20"), "unparsed": [], "absent": []},
        {"id": 2, "we ird": None, "n": Decimal("-0.05"), "unparsed": [], "absent": ["we ird"]},
        dict.fromkeys(["id", "we ird", "n", "unparsed", "absent"]),
    ]
    assert to_arrow([], ODD, part="row").num_rows == 0


def test_no_name_stands_twice():
    """A column that is called as something else in its row has the name of its field, and comes back."""
    named = ("id", "unparsed", "absent", "n (until version 1)", "n")
    odd = table(*[f"{name}|varchar(9)" for name in named], key=("id", "absent"))
    payloads = [row_payload(odd, dict.fromkeys(named, "5"))]
    batch = to_arrow(payloads, odd, part="row")
    own = dict.fromkeys(["id", "unparsed_x_2", "absent_x_2", "n (until version 1)", "n"], "5")
    assert batch.to_pylist() == [{**own, "unparsed": [], "absent": []}]
    assert from_arrow(batch, odd, part="row").to_pylist() == payloads
    newer = evolve(odd, "ALTER TABLE t MODIFY n INT").schema
    (row,) = to_arrow(payloads, [odd, newer], [1], part="row").to_pylist()
    assert {name: row[name] for name in own} == {**own, "n": 5}
    names = [one.name for one in arrow_schema(newer).field("after").type]
    assert sorted(names) == sorted({*row})


def test_every_kind_of_value_has_its_type():
    """Dates, times, instants with and without zone, decimals of both widths, fixed bytes, symbols, unions, nothing."""

    def logical(base, meaning, **more):
        return {"type": base, "logicalType": meaning, **more}

    decimal = {"precision": 40, "scale": 3}
    declared = {
        "day": (logical("int", "date"), 19_782, dt.date(2024, 2, 29)),
        "ms": (logical("int", "time-millis"), 1, dt.time(0, 0, 0, 1000)),
        "us": (logical("long", "time-micros"), 1, dt.time(0, 0, 0, 1)),
        "at": (logical("long", "timestamp-micros"), -1, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)),
        "local": (logical("long", "local-timestamp-millis"), 1, dt.datetime(1970, 1, 1, 0, 0, 0, 1000)),  # noqa: DTZ001
        "wide": (logical("bytes", "decimal", **decimal), b"\xff" * 18, Decimal("-0.001")),
        "fixed": ({"type": "fixed", "name": "F", "size": 2}, b"ab", b"ab"),
        "small": (logical("fixed", "decimal", name="D", size=2, precision=3), b"\xff\x00", Decimal(-256)),
        "label": (enum("RED", "BLUE"), "BLUE", "BLUE"),
        "either": (["null", "int", "string"], Branch(2, "x"), {"member0": None, "member1": "x"}),
        "neither": (["null", "long", "string"], Branch(0, None), None),
        "null": ("null", None, None),
        "items": (array(["null", "boolean"]), [Branch(1, True), Branch(0, None)], [True, None]),
        "pairs": (mapping("long"), {"a": 1, "b": 2}, [("a", 1), ("b", 2)]),
        "single": ("float", 0.5, 0.5),
    }
    schema, how = how_to_read(record(*[field(name, kind) for name, (kind, _, _) in declared.items()]))
    payload = write(schema.root, {name: datum for name, (_, datum, _) in declared.items()})
    (row,) = read_batch(binary([payload]), how).to_pylist()
    assert row == {name: value for name, (_, _, value) in declared.items()}
    assert same_batch([payload, None] * 40, how) == "read"


def test_a_payload_that_is_none_says_which_row_and_where():
    """By the engine and without it, behind rows that are whole."""
    good = row_payload(ODD, {"id": "1", "we ird": "x", "n": "1.00"})
    for bad, sentence in (
        (good + b"\0", "message: $[2]: expected the end of the payload at byte 10, got 1 more"),
        (b"\x02\x02", "message: $[2].we_x20_ird: expected 1 byte, got 0 at byte 2, where the payload ends"),
    ):
        with pytest.raises(PayloadError) as caught:
            to_arrow([good, None, bad], ODD, part="row")
        assert str(caught.value) == sentence
    two = evolve(ODD, "ALTER TABLE t ADD x INT").schema
    with pytest.raises(PayloadError, match=r"^message: \$\[1\]: expected the end of the payload"):
        to_arrow([good, good + b"\0"], [ODD, two], [1, 1], part="row")
    with pytest.raises(PayloadError, match=r"^message: \$\[1\]: expected a version of shop\.t: 1, 2, got 7$"):
        to_arrow([good, good], [ODD, two], [1, 7], part="row")


def test_rows_of_older_versions_are_read_under_a_newer_one_and_the_other_way():
    """A renamed column has its old values, a new one its default; a version or payload of None is a row of nulls."""
    two = evolve(ODD, "ALTER TABLE t CHANGE n `a b` DECIMAL(12,2), ADD c INT DEFAULT 5").schema
    payloads = [row_payload(ODD, {"id": "1", "n": "7.00"}), row_payload(two, {"id": "2", "a b": "8.00", "c": "9"})]

    def read(payloads, numbers, reader=None):
        batch = to_arrow(payloads, [ODD, two], numbers, reader, part="row")
        return batch.select([name for name in batch.schema.names if name not in ("unparsed", "absent")])

    assert read(payloads, [1, 2]).to_pylist() == [
        {"id": 1, "we ird": None, "a b": Decimal("7.00"), "c": 5},
        {"id": 2, "we ird": None, "a b": Decimal("8.00"), "c": 9},
    ]
    assert read(payloads[:1], [1], 1).to_pylist() == read(payloads[:1], [1], ODD).to_pylist()
    assert read([payloads[0], None, payloads[1]], [None, 1, 2])["c"].to_pylist() == [None, None, 9]
    assert read([payloads[1], payloads[0]], pa.array([2, None], pa.int8()))["c"].to_pylist() == [9, None]
    three = evolve(two, "ALTER TABLE t MODIFY id BIGINT").schema
    with pytest.raises(PayloadError, match=r"^message: \$\[0\]\.id: .*no branch of \[null, int\] reads long"):
        to_arrow([row_payload(three, {"id": "1"})], [two, three], [3], 2, part="row")


def test_a_column_that_changed_its_type_has_its_older_values_where_they_are_exact():
    """In the newer column, and the others only in the older one; of a key as well, which has no older columns."""
    one = table("id|varchar(9)", "v|varchar(9)", key=("id",))
    two = evolve(one, "ALTER TABLE t MODIFY id INT, MODIFY v INT").schema
    rows = [row_payload(one, {"id": "1", "v": "x"}), row_payload(one, {"id": "2", "v": "5"})]
    batch = to_arrow([*rows, row_payload(two, {"id": "3", "v": "6"})], [one, two], [1, 1, 2], part="row")
    assert batch.select(["id", "v", "v (until version 1)"]).to_pylist() == [
        {"id": 1, "v": None, "v (until version 1)": "x"},
        {"id": 2, "v": 5, "v (until version 1)": "5"},
        {"id": 3, "v": 6, "v (until version 1)": None},
    ]
    keys = to_arrow([b"\x02\x021\0"], [one, two], [1], part="key")
    assert keys.to_pylist() == [{"id": 1, "unparsed": []}]


def test_a_column_of_bytes_that_became_text_has_what_is_text():
    """One older value that is no UTF-8 is read where it was, and all others under the new type."""
    one = table("id|int", "v|varbinary(9)")
    two = evolve(one, "ALTER TABLE t MODIFY v VARCHAR(9)").schema
    rows = [row_payload(one, {"id": i, "v": raw}) for i, raw in enumerate(("YWI=", "/w==", "w6k="))]
    batch = to_arrow([*rows, row_payload(two, {"id": 3, "v": "x"})], [one, two], [1, 1, 1, 2], part="row")
    assert batch.column("v").to_pylist() == ["ab", None, "é", "x"]
    assert batch.column("v (until version 1)").to_pylist() == [b"ab", b"\xff", "é".encode(), None]


def test_what_is_asked_for_wrongly_is_said():
    """A version that each payload needs, a reader that there is not, a key that there is not, what is not bytes."""
    two = evolve(ODD, "ALTER TABLE t ADD x INT").schema
    for ask, sentence in (
        (lambda: to_arrow([b""], [ODD, two]), "the version of each payload, as there are 2"),
        (lambda: to_arrow([b""], [ODD, two], [1, 1]), "1 payloads with 2 versions"),
        (lambda: to_arrow([], [ODD], reader=3), "the reader is one of the versions 1, not 3"),
        (lambda: to_arrow([], []), "a table has at least one version"),
        (lambda: to_arrow([], table("a|int"), part="key"), "shop.t has no key in version 1"),
        (lambda: to_arrow([], ODD, part="rows"), "a part is envelope, row, key, not rows"),
    ):
        with pytest.raises(ValueError, match=f"^{sentence}$"):
            ask()
    for payloads in (
        ["text"],
        pa.array([1]),
        [1, b"x"],
        [b"x", 1],
        [2**70],
        pa.array([[b"x"]]),
        pa.array([{"a": b"x"}]),
    ):
        with pytest.raises(TypeError, match="payloads are bytes"):
            to_arrow(payloads, ODD)


def test_arrays_of_payloads_are_taken_as_they_are():
    """With what stands before and behind them, in one piece or several, with offsets of 32 or 64 bits."""
    rows = [row_payload(ODD, {"id": str(i), "n": "1.00"}) for i in range(20)]
    wanted = to_arrow(rows[3:9], ODD, part="row")
    whole = pa.array(rows, pa.binary())
    assert to_arrow(whole[3:9], ODD, part="row").equals(wanted)
    assert to_arrow(whole.cast(pa.large_binary())[3:9], ODD, part="row").equals(wanted)
    assert to_arrow(pa.chunked_array([whole[3:5], whole[5:9]]), ODD, part="row").equals(wanted)


def test_what_arrow_cannot_hold_is_refused():
    """A record within itself, and a decimal of more digits than Arrow has."""
    endless = record(field("next", ["null", "N"]), name="N")
    with pytest.raises(SchemaError, match="N contains itself, which Arrow does not read"):
        how_to_read(endless)
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 77}
    with pytest.raises(SchemaError) as caught:
        how_to_read(record(field("a", array(wide))))
    reason = "Arrow's decimals have at most 76 digits, and decimal(77,0) has more"
    assert str(caught.value) == f"schema $.a[]: {reason}"
    with pytest.raises(SchemaError, match=r"^schema \$\.a\[\]: a union without branches has no data$"):
        how_to_read(record(field("a", array([]))))


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "fixed", "name": "F", "size": 0},
        record(*[field(f"n{i}", "null") for i in range(1_000)], name="E"),
        record(field("f", {"type": "fixed", "name": "F", "size": 0}), name="E"),
    ],
    ids=["null", "fixed", "nulls", "within"],
)
def test_an_array_of_what_has_no_bytes_is_refused(items):
    """A payload of six bytes would have 100,000 items, for which each column of Arrow's would have room."""
    reason = "its items have no bytes, of which Arrow would make much of few payloads"
    with pytest.raises(SchemaError) as caught:
        how_to_read(record(field("m", mapping(array(items)))))
    assert str(caught.value) == f"schema $.m{{}}[]: {reason}"


def test_an_array_of_payloads_that_is_none_is_refused():
    """Its offsets may lead anywhere; so may the places in a dictionary, and the versions are held against it, too."""
    payload = row_payload(ODD, {"id": "1"})
    data = pa.py_buffer(payload)
    for places in ((0, 99, 3), (0, 2**31 - 1, 3), (0, -9, 3)):
        column = pa.Array.from_buffers(pa.binary(), 2, [None, pa.py_buffer(array_of("i", places)), data])
        for payloads in (column, pa.chunked_array([column]), column[1:]):
            with pytest.raises(PayloadError, match=r"^message: \$: expected a valid array, got '?.*[Oo]ffset"):
                to_arrow(payloads, ODD, part="row")
    lost = pa.DictionaryArray.from_arrays(pa.array([0, 7]), pa.array([1]), safe=False)
    with pytest.raises(PayloadError, match=r"^message: \$: expected a valid array, got '?.*7"):
        to_arrow([payload, payload], ODD, lost, part="row")


def test_one_batch_has_at_most_2_gib_in_a_column(monkeypatch):
    """The engine leaves what is more, as the text of a symbol may be, and the exact way says it."""
    monkeypatch.setattr(layout, "MAX_BYTES", 10)
    _, how = how_to_read(record(field("e", enum("LONG"))))
    assert how.filler.fill(slices_of(binary([b"\0"] * 3))) == ([], 2 if COMPILED else 0, False)
    monkeypatch.setattr(record_batches, "MAX_BYTES", 25)
    two = evolve(ODD, "ALTER TABLE t ADD x INT").schema
    rows = [row_payload(ODD, {"id": "1"})] * 3
    with pytest.raises(PayloadError, match="expected at most 25 bytes in a column of a batch, got more"):
        to_arrow(rows, [ODD, two], [1, 1, 1], part="row")


def test_names_of_a_map_stand_once():
    """As in every payload that is checked."""
    _, how = how_to_read(record(field("m", mapping("int"))))
    assert same_batch([b"\x04\x02a\x02\x02b\x02\0"], how) == "read"
    with pytest.raises(PayloadError, match=r"^message: \$\[0\]\.m\.a: expected each name once, got 'a' twice$"):
        read_batch(binary([b"\x04\x02a\x02\x02a\x02\0"]), how)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("items", "item"),
    [
        (["null", record(*[field(f"n{i}", "long") for i in range(1_000)], name="E")], b"\0"),
        (["null", "int", *[record(field("n", "long"), name=f"E{i}") for i in range(500)]], b"\2\2"),
        (enum("A", "B" * 10_000), b"\2"),
    ],
    ids=["record", "union", "symbol"],
)
@pytest.mark.parametrize("kind", ["array", "map"])
def test_items_out_of_all_proportion_to_their_payloads_are_refused(kind, items, item):
    """A byte of a payload may be cells in a thousand columns: of a few there may be many, and of many a few."""
    _, how = how_to_read(record(field("a", array(items) if kind == "array" else mapping(items))))

    def payload(count: int) -> bytes:
        names = (b"" if kind == "array" else b"\x08%04d" % i for i in range(count))
        return b"".join([long(count), *[name + item for name in names], b"\0"])

    assert same_batch([payload(200)] * 10, how) == "read"
    whole = binary([payload(9_000)] * 2)
    for way in (read_batch, lambda *given: read_exactly(slices_of(given[0]), given[1])):
        with pytest.raises(PayloadError) as caught:
            way(whole, how)
        most = "items of arrays and maps that take at most 32 MiB and 64 times the payloads"
        assert str(caught.value) == f"message: $: expected {most}, got more"
    if COMPILED:
        assert how.filler.fill(slices_of(whole))[1] < 2


def wide_payloads() -> tuple[list[bytes], object]:
    """Return a whole row of a table of 4,000 columns and one whose images are null, and how they are read."""
    image = record(*[field(f"c{i}", ["null", "long"]) for i in range(2_000)], name="Image")
    envelope = record(
        field("before", ["null", image]), field("after", ["null", "Image"]), field("d", ["null", array("int")])
    )
    return [b"\0" + b"\2" + b"\2\2" * 2_000 + b"\0", b"\0\0\0"], how_to_read(envelope)[1]


@pytest.mark.slow
def test_columns_that_no_row_fills_take_no_room():
    """A byte of a payload is an image that is null, and would be a cell in each of thousands of columns."""
    (whole, nothing), how = wide_payloads()
    assert same_batch([nothing, whole, nothing], how) == same_batch([nothing] * 3, how) == "read"
    rows = binary([nothing] * 10_000)
    for made in (read_batch(rows, how), read_exactly(slices_of(rows), how)):
        made.validate(full=True)
        assert made.null_count == 0
        assert made[9_999].as_py() == {"before": None, "after": None, "d": None}
        assert pa.RecordBatch.from_struct_array(made).get_total_buffer_size() < 1 << 20
        assert pa.chunked_array([made]).to_pylist()[:2] == made.to_pylist()[:2]
        assert pc.sum(pc.struct_field(made, ["after", "c7"])).as_py() is None
        assert made.take(pa.array([3, 4])).field("after").field("c1").null_count == 2


@pytest.mark.slow
def test_rows_that_fill_far_more_than_their_payloads_are_refused():
    """One whole row is enough to fill the columns of all; as many as a batch of usual rows may have are read."""
    (whole, nothing), how = wide_payloads()
    assert read_batch(binary([whole] * 3_000), how)[2_999].as_py()["after"]["c1"] == 1
    column = binary([nothing] * 5_000 + [whole])
    for way in (read_batch, lambda *given: read_exactly(slices_of(given[0]), given[1])):
        with pytest.raises(PayloadError) as caught:
            way(column, how)
        most = "rows whose columns take at most 64 MiB and 64 times the payloads in a batch"
        assert str(caught.value) == f"message: $: expected {most}, got more"


def test_without_pyarrow_it_is_said_what_to_install():
    """As `cdcavro.spark` does."""
    code = "import sys; sys.modules['pyarrow'] = None; import cdcavro.arrow"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    sentence = "SetupError: pyarrow is not installed: pip install 'cdcavro[arrow]'"
    assert done.stderr.splitlines()[-1] == f"cdcavro.errors.{sentence}"


def test_how_a_version_is_read_is_made_once():
    """Also where the same schema comes again."""
    again = TableSchema(parse_schema(ODD.row.json))
    assert reading_for(ODD, "row") is reading_for(again, "row")


@pytest.mark.parametrize("values", [[b"ab", None, b"cd", b"e"], ["ab", None, "cd", "e"], [1, None, 3, 4]])
def test_values_of_a_slice_are_blanked_and_the_others_stay(values):
    """Also none of them, and with the values of chunks; what comes out is sound, which Arrow's own was not before 24."""
    own = pa.array([*values, *values]).slice(4)
    for column in (own, pa.chunked_array([own.slice(0, 1), own.slice(1)])):
        for mask in ([False] * 4, [True, False, None, False], [True] * 4):
            blanked = blank(column, pa.array(mask))
            blanked.validate(full=True)
            assert blanked.to_pylist() == [
                value if gone is False else None for value, gone in zip(values, mask, strict=True)
            ]


def test_a_process_takes_memory_by_jemalloc_unless_its_environment_names_a_pool(monkeypatch):
    """Where pyarrow has it."""
    before = pa.default_memory_pool()
    try:
        monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", before.backend_name)
        take_pool()
        assert pa.default_memory_pool().backend_name == before.backend_name
        monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL")
        take_pool()
        has_it = "jemalloc" in pa.supported_memory_backends()
        assert pa.default_memory_pool().backend_name == ("jemalloc" if has_it else before.backend_name)
    finally:
        pa.set_memory_pool(before)
