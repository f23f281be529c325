"""Plain Avro of typed tables, as `cdcavro tables --plain` and `cdcavro.arrow.write_plain` write it."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from click.testing import CliRunner

import cdcavro
from cdcavro.arrow import plain_avro, plain_schema, to_arrow, write_plain
from cdcavro.cli import main
from support.messages import shop_canal, shop_debezium
from support.readers import KINDS
from support.shop_tables import shop
from support.typed import table

LINES = {"canal": shop_canal, "debezium": shop_debezium}
INSERT = {"type": "INSERT", "database": "d", "table": "t", "pkNames": ["id"]}
# What every reader reads, and means the same by.
KNOWN = {"date", "time-millis", "time-micros", "timestamp-millis", "timestamp-micros", "decimal"}


def run(folder, *options, messages):
    """Run the command on messages, and return its result."""
    source = folder / "in.jsonl"
    source.write_bytes(b"".join(message + b"\n" for message in messages))
    arguments = ["tables", source, "--out", folder / "out", "--zone", "UTC", *options]
    return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)


def inserts(types, *data):
    """Return inserts as Canal sends them."""
    rows = enumerate(data, 1)
    return [json.dumps(INSERT | {"id": i, "es": i, "mysqlType": types, "data": [row]}).encode() for i, row in rows]


def rows(path):
    """Return the rows of a file."""
    with path.open("rb") as stream:
        return list(fastavro.reader(stream))


def nested(row, schema):
    """Return a plain row as the change that it is of, each image as the list of its values."""
    fields = list(row)
    count = len(schema.record["fields"])
    source = {name[12:]: value for name, value in row.items() if name.startswith("_cdc_source_")}
    found = {name: row[f"_cdc_{name}"] for name in ("op", "ts_ms", "ts_us")}
    found["source"] = source | {"position": json.loads(source["position"] or "null")}
    names = {"after": fields[:count], "before": fields[-count:]}
    for image, columns in names.items():
        *values, unparsed, absent = [row[name] for name in columns]
        if absent is None:
            assert {unparsed, *values} == {None}
        found[image] = absent and [*values, [*json.loads(unparsed).items()], json.loads(absent)]
    assert len(row) == sum(map(len, names.values())) + len(source) + 3
    return found


def as_read(row):
    """Return a row of `to_arrow` in the form of `nested`."""
    return row | {image: row[image] and [*map(local_text, row[image].values())] for image in ("before", "after")}


def local_text(value):
    """Return a local time as its text, anything else as it is."""
    is_local = isinstance(value, dt.datetime) and value.tzinfo is None
    return value.isoformat(" ", "microseconds") if is_local else value


@pytest.mark.slow
@pytest.mark.parametrize("producer", ["canal", "debezium"])
def test_every_value_of_every_change_is_in_a_file(tmp_path, producer):
    """Those of a real database, under the newest version: both images, and all that is known of a change."""
    done = run(tmp_path, "--plain", messages=LINES[producer]())
    assert done.exit_code in (0, 3), done.output
    tables, typed = shop(producer)
    count = 0
    for one, schema in [(each, schema) for each in tables.tables for schema in each.versions]:
        payloads = [row.payload for row in typed if (row.table, row.schema.version) == (one, schema.version)]
        if payloads:
            wanted = to_arrow(payloads, one, [schema.version] * len(payloads)).to_pylist()
            for row in wanted:
                row["source"]["message_file"] = str(tmp_path / "in.jsonl")
            found = rows(tmp_path / "out" / one.schema.full_name / f"v{schema.version}.avro")
            assert [nested(row, one.schema) for row in found] == [as_read(row) for row in wanted]
            count += len(found)
    assert count == len(typed) > 100


def test_the_columns_of_the_table_stand_first_and_in_its_order(tmp_path):
    """Also those that came later, in files of all versions; behind them all else."""
    sql = "ALTER TABLE t ADD COLUMN b INT AFTER id, ADD COLUMN f INT FIRST"
    statement = INSERT | {"type": "ALTER", "id": 2, "es": 2, "isDdl": True, "sql": sql}
    (first,) = inserts({"id": "int", "a": "int"}, {"id": "1", "a": "2"})
    last = json.loads(first) | {"id": 3, "es": 3, "mysqlType": dict.fromkeys(["f", "id", "b", "a"], "int")}
    assert (
        run(tmp_path, "--plain", messages=[first, json.dumps(statement).encode(), json.dumps(last).encode()]).exit_code
        == 0
    )
    for version in (1, 2):
        (row,) = rows(tmp_path / "out" / "d.t" / f"v{version}.avro")
        names = [*row]
        assert names[:4] == ["f", "id", "b", "a"]
        assert all(name.startswith("_cdc_") for name in names[4:])


def test_there_is_nothing_in_it_that_a_reader_refuses():
    """Each column of any type is a union of null and a primitive type, with no name twice and no new logical type."""
    types = [
        *(kind.type for kind in KINDS.values()),
        "geometry",
        "json",
        "bit(9)",
        "int[]",
        "decimal(65,30)",
        "set('a')",
    ]
    schema = json.loads(plain_schema(table(*(f"c{i}|{type}" for i, type in enumerate(types)))).json)
    names = [field["name"] for field in schema["fields"]]
    assert len({name.casefold() for name in names}) == len(names) > 60
    for field in schema["fields"]:
        null, declared = field["type"]
        plain = declared if isinstance(declared, dict) else {"type": declared}
        assert (null, field["default"]) == ("null", None)
        assert plain["type"] in {"boolean", "int", "long", "float", "double", "string", "bytes"}
        assert plain.get("logicalType", "date") in KNOWN


def test_columns_of_any_name_stand_beside_what_is_said_of_the_change(tmp_path):
    """One called as that is, or as another but for letter case, is escaped; the attribute has the true name."""
    names = ["_cdc_op", "_CDC_OP", "unparsed", "absent", "UNPARSED", "a", "A", "c c", "_x5f_cdc_op", "_x41_"]
    row = {"id": "1"} | {name: f"v{i}" for i, name in enumerate(names)}
    done = run(tmp_path, "--plain", messages=inserts(dict.fromkeys(row, "varchar(9)"), row))
    assert done.exit_code == 0, done.output
    (path,) = (tmp_path / "out" / "d.t").glob("*.avro")
    (found,) = rows(path)
    with path.open("rb") as stream:
        fields = fastavro.reader(stream).writer_schema["fields"]
    columns = [(field["cdc"]["column"], field["name"]) for field in fields if "cdc" in field]
    called, before = dict(columns[: len(row)]), dict(columns[len(row) :])
    assert {name: found[field] for name, field in called.items()} == row
    assert before == {name: f"_cdc_before_{field}" for name, field in called.items()}
    assert len({name.casefold() for name in found}) == len(found)
    escaped = {"_cdc_op": "_x5f_cdc_op", "unparsed": "unparsed_x_2", "a": "a", "A": "_x41_", "_x41_": "_x5f_x41_"}
    assert {name: called[name] for name in escaped} == escaped
    assert (found["_cdc_op"], found["_cdc_unparsed"], found["_cdc_absent"]) == ("c", "{}", "[]")


def test_what_does_not_fit_and_what_is_not_there_is_told_from_null(tmp_path):
    """By the texts beside the row, which a row that is not there does not have."""
    types = {"id": "int", "day": "date", "n": "int"}
    rows_of = [{"id": "1", "day": "0000-00-00", "n": None}, {"id": "2", "day": "2024-02-29"}]
    delete = json.dumps(INSERT | {"type": "DELETE", "id": 3, "es": 3, "mysqlType": types, "data": rows_of[:1]}).encode()
    done = run(tmp_path, "--plain", messages=[*inserts(types, *rows_of), delete])
    assert done.exit_code == 0, done.output
    found = rows(tmp_path / "out" / "d.t" / "v1.avro")
    own = ("day", "n", "_cdc_unparsed", "_cdc_absent", "_cdc_before_day", "_cdc_before_unparsed")
    assert [tuple(row[name] for name in own) for row in found] == [
        (None, None, '{"day":"0000-00-00"}', "[]", None, None),
        (dt.date(2024, 2, 29), None, "{}", '["n"]', None, None),
        (None, None, None, None, None, '{"day":"0000-00-00"}'),
    ]


def test_a_column_that_came_later_has_its_default_in_older_rows(tmp_path):
    """A file of each version, all with the columns of the newest."""
    statement = INSERT | {
        "type": "ALTER",
        "isDdl": True,
        "sql": "ALTER TABLE t CHANGE n m INT, ADD d DECIMAL(3,2) DEFAULT -1.28",
    }
    old, new = inserts({"id": "int", "n": "int"}, {"id": "1", "n": "5"})[0], inserts({}, {"id": "1"})[0]
    new = json.dumps(
        INSERT
        | {
            "id": 3,
            "es": 3,
            "mysqlType": {"id": "int", "m": "int", "d": "decimal(3,2)"},
            "data": [{"id": "2", "m": "6", "d": "1.27"}],
        }
    ).encode()
    done = run(tmp_path, "--plain", messages=[old, json.dumps(statement | {"id": 2, "es": 2}).encode(), new])
    assert done.exit_code == 0, done.output
    found = [row for i in (1, 2) for row in rows(tmp_path / "out" / "d.t" / f"v{i}.avro")]
    assert [(row["id"], row["m"], row["d"]) for row in found] == [(1, 5, Decimal("-1.28")), (2, 6, Decimal("1.27"))]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "1970-01-01 00:00:00.000000"),
        (-1, "1969-12-31 23:59:59.999999"),
        (253_402_300_799_999_999, "9999-12-31 23:59:59.999999"),
        (253_402_300_800_000_000, "+10000-01-01 00:00:00.000000"),
        (-62_135_596_800_000_000, "0001-01-01 00:00:00.000000"),
        (-62_135_596_800_000_001, "+0000-12-31 23:59:59.999999"),
        (-(2**63), "-290308-12-21 19:59:05.224192"),
        (2**63 - 1, "+294247-01-10 04:00:54.775807"),
    ],
)
def test_a_local_time_is_a_text_with_all_its_digits(count, text):
    """Of one length and in order, for all that 64 bits hold."""
    ((values),) = [plain_avro._kind_of(pa.timestamp("us"), "c").values]
    assert values(pa.array([count, None], pa.int64()).cast(pa.timestamp("us"))) == [text, None]


def test_decimals_keep_every_digit_and_take_few_bytes():
    """In slices of arrays, of both widths, as Avro has them."""
    for kind in (pa.decimal128(38, 4), pa.decimal256(50, 4)):
        values = [Decimal(digits).scaleb(-4) for digits in ("0", "-128", "127", "128", "9" * 34, "-" + "9" * 34)]
        found = plain_avro._kind_of(kind, "c").values(pa.array([None, *values, None], kind).slice(1))
        assert [raw and int.from_bytes(raw, "big", signed=True) for raw in found[:-1]] == [
            int(one * 10**4) for one in values
        ]
        assert (found[:4], found[-1]) == ([b"\0", b"\x80", b"\x7f", b"\0\x80"], None)


@pytest.mark.slow
def test_batches_are_written_in_python(tmp_path):
    """To a new file, if they have the columns of the version."""
    tables = cdcavro.Tables()
    (change,) = cdcavro.to_changes(inserts({"id": "int"}, {"id": "7"})[0], "canal")
    (typed,) = tables.add(change)
    batch, path = to_arrow([typed.payload] * 2500, typed.schema), tmp_path / "t.avro"
    write_plain(path, [batch, batch.slice(2499)], typed.schema)
    assert [row["id"] for row in rows(path)] == [7] * 2501
    with pytest.raises(FileExistsError):
        write_plain(path, [batch], typed.schema)
    with pytest.raises(ValueError, match=r"a batch of version 1 as to_arrow makes it, not one of id$"):
        write_plain(tmp_path / "u.avro", [batch, pa.record_batch({"id": pa.array([1], pa.int32())})], typed.schema)
    assert [file.name for file in tmp_path.iterdir()] == ["t.avro"]


@pytest.mark.parametrize("options", [("--as", "parquet"), ("--current",)])
def test_plain_is_of_avro_only(tmp_path, options):
    """Which is said before anything is read."""
    done = run(tmp_path, "--plain", *options, messages=[b"{}"])
    assert done.exit_code == 2
    assert "--plain is for Avro files of changes, not for Parquet" in done.stderr
    assert not (tmp_path / "out").exists()
