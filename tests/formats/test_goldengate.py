"""The facts of `goldengate`: messages of Oracle GoldenGate's JSON formatter, operation model."""

from __future__ import annotations

import json
from random import Random
from zoneinfo import ZoneInfo

import pytest

import cdcavro
from cdcavro.change import Arrival
from cdcavro.change.model import Change, Source
from cdcavro.change.order import in_order, order_key
from cdcavro.engine.machine import COMPILED
from cdcavro.errors import StructureError
from cdcavro.table import TypeOverrides
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.transcoding.mapping import from_changes, to_changes
from cdcavro.wire.sniff import fitting_formats
from support.messages import goldens
from support.mutations import mutated
from support.roundtrip import assert_fast, assert_golden, avro, error_of, golden_cases
from support.typed import read

ZONE = ZoneInfo("Asia/Shanghai")
COMPILED_ONLY = pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")


def message(**members: object) -> str:
    """Return a message that inserts a row, with other members; those that are None are left out."""
    usual = {
        "table": "S.T",
        "op_type": "I",
        "op_ts": "2023-11-14 22:13:21.000000",
        "pos": "00000000120000004821",
        "after": {"ID": 1},
    }
    stated = {name: value for name, value in (usual | members).items() if value is not None}
    return json.dumps(stated, separators=(",", ":"))


def change(zone: ZoneInfo | None = None, **members: object) -> Change:
    """Return the change of such a message."""
    (found,) = to_changes(message(**members), "goldengate", zone=zone)
    return found


@pytest.mark.parametrize("golden", golden_cases("goldengate"))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample comes back as it was sent, and is told from other formats."""
    assert_golden("goldengate", golden)
    assert fitting_formats(golden).keys() <= {"goldengate", "goldengate_row", "goldengate_tx"}
    assert cdcavro.sniff(golden) == "goldengate"


@pytest.mark.parametrize("format", [name for name in cdcavro.FORMATS if name not in ("goldengate", "goldengate_row")])
def test_no_message_of_another_format_is_one(format):
    """None has an operation and a position or time of these names."""
    assert [text for text in goldens(format) if "goldengate" in fitting_formats(text)] == []


@pytest.mark.parametrize(
    ("members", "is_told"),
    [
        ({"op_ts": None}, True),
        ({"pos": None}, True),
        ({"op_ts": None, "pos": None}, True),
        ({"op_ts": None, "pos": None, "after": None}, False),
        ({"op_type": "INSERT"}, False),
        ({"op_type": "i"}, False),
        ({"op_type": None}, False),
        ({"after": [1]}, False),
    ],
)
def test_an_operation_and_a_position_or_time_or_row_tell_it(members, is_told):
    """The operation alone does not, and its words are those of the formatter's default."""
    assert ("goldengate" in fitting_formats_or_none(message(**members))) is is_told


def fitting_formats_or_none(text: str) -> dict[str, int]:
    """Return the formats that a message fits, none for one that is known by sight."""
    try:
        return fitting_formats(text)
    except cdcavro.UnknownMessageError:
        return {}


@pytest.mark.parametrize(
    ("name", "database", "schema", "table"),
    [
        ("SHOP.ORDERS", "SHOP", None, "ORDERS"),
        ("PDB1.SHOP.ORDERS", "PDB1", "SHOP", "ORDERS"),
        ("ORDERS", None, None, "ORDERS"),
        ("PDB1.SHOP.A.B", "PDB1", "SHOP", "A.B"),
        (".ORDERS", None, None, "ORDERS"),
        ("SHOP.", "SHOP", None, None),
        ("", None, None, None),
        (None, None, None, None),
    ],
)
def test_a_full_name_has_two_names_or_three(name, database, schema, table):
    """Of two the first is the database; the message itself comes back."""
    source = change(table=name).source
    assert (source.database, source.schema, source.table) == (database, schema, table)
    text = message(table=name)
    assert [json.loads(back) for back in from_changes(to_changes(text, "goldengate"), "goldengate")] == [
        json.loads(text)
    ]


@pytest.mark.parametrize(
    ("pos", "position"),
    [
        ("00000000120000004821", (12, 4821)),
        ("00000000000000000000157", (0, 157)),
        ("157", (0, 157)),
        ("9999999999", (0, 9_999_999_999)),
        ("10000000000", (1, 0)),
        ("9" * 28, (10**18 - 1, 10**10 - 1)),
        (None, None),
    ],
)
def test_a_position_is_a_file_of_the_trail_and_an_offset(pos, position):
    """The offset has ten digits."""
    assert change(pos=pos).position == position


@pytest.mark.parametrize("pos", ["9" * 29, "-1", "", "1.5"])
def test_a_position_that_is_none_is_refused(pos):
    """Beside others it would keep its table from being ordered."""
    with pytest.raises(StructureError, match="pos: expected a position in the source, got"):
        change(pos=pos)


def test_positions_are_in_order_as_numbers_whatever_their_length():
    """Beyond 64 bits, too, and where one has zeros in front that another has not."""
    random = Random(3)
    numbers = sorted({random.randrange(10 ** random.randrange(1, 28)) for _ in range(300)})
    places = [str(number).zfill(random.choice((0, 20, 23))) for number in numbers]
    changes = [change(pos=place) for place in places]
    assert in_order(random.sample(changes, len(changes))) == changes
    assert sorted(map(order_key, changes)) == [order_key(one) for one in changes]


def test_times_are_of_the_zone_that_is_given():
    """Without one they are not known; the time at which the message was made may be of another zone."""
    assert change().event_time is None
    found = change(ZONE, op_ts="2023-11-15 06:13:21.000250", current_ts="2023-11-14T22:13:24.000000")
    assert (found.event_time, found.system_time) == (1_700_000_001_000_250, None)
    (text,) = from_changes([found], "goldengate", zone=ZONE)
    assert json.loads(text)["op_ts"] == "2023-11-15 06:13:21.000250"
    assert [*found.members] == ["/pos", "/current_ts"]


@pytest.mark.parametrize(
    ("members", "transaction"),
    [
        ({"xid": "0.6.8.13412"}, "0.6.8.13412"),
        ({"tokens": {"6": "9.0.80330", "R": "AAA"}}, "9.0.80330"),
        ({"xid": "1.2.3", "tokens": {"6": "9.0.80330"}}, "1.2.3"),
        ({"tokens": {"txid": "0.442.2"}}, None),
        ({"tokens": {"mine": [1.0], "other": 10**30, "none": None}}, None),
        ({"tokens": {}}, None),
    ],
)
def test_the_transaction_is_a_meta_column_or_a_token(members, transaction):
    """All tokens come back."""
    assert change(**members).transaction == transaction
    assert_fast("goldengate", message(**members))
    assert avro("goldengate", message(**members))["extras"] == {}


def test_a_column_that_is_not_there_is_not_null():
    """An update has what the trail has."""
    found = change(op_type="U", before={"ID": 1, "A": None}, after={"ID": 1, "B": 2})
    assert (found.before, found.after, found.changed) == ({"ID": 1, "A": None}, {"ID": 1, "B": 2}, None)


def test_a_companion_says_that_a_column_is_not_stated():
    """It is a boolean beside the column, and no column; any other member of such a name is one."""
    row = {"ID": 1, "ID_isMissing": False, "A": None, "A_isMissing": True, "B": None, "B_isMissing": False}
    text = message(after=row)
    assert change(after=row).after == {"ID": 1, "B": None}
    assert [json.loads(back) for back in from_changes([change(after=row)], "goldengate")] == [json.loads(text)]
    assert avro("goldengate", text)["after"].keys() == row.keys()
    for columns in ({"A": 1, "A_isMissing": "no"}, {"A": 1, "B_isMissing": True}, {"A": 1, "a_ismissing": True}):
        assert change(after=columns).after == columns
    chain = {"A": 1, "A_isMissing": False, "A_isMissing_isMissing": False}
    assert change(after=chain).after == {"A": 1}


def test_a_value_of_a_column_that_is_said_to_be_missing_is_refused():
    """It may be a value, or a column that is called like a companion: neither is left out."""
    text = message(after={"ID": 1, "A": 5, "A_isMissing": True})
    sentence = "goldengate: $.after.A: expected null, as 'A_isMissing' is true, got a value"
    assert error_of(to_changes, text, "goldengate") == sentence
    assert json.loads(cdcavro.decode(cdcavro.encode(text, "goldengate"), "goldengate")) == json.loads(text)


def test_an_image_that_an_operation_cannot_have_is_refused():
    """Truncate has none."""
    sentence = "goldengate: $.after: expected no row after the change for T, got some"
    assert error_of(to_changes, message(op_type="T"), "goldengate") == sentence
    assert change(op_type="T", after=None).op == "TRUNCATE"


def test_a_message_of_the_row_model_has_no_row():
    """It is refused where a row is needed, and comes back."""
    text = message(after=None, ID=1, NAME="x")
    assert cdcavro.sniff(text) == "goldengate_row"
    assert json.loads(cdcavro.decode(cdcavro.encode(text, "goldengate"), "goldengate")) == json.loads(text)
    sentence = "goldengate: $: expected a row before or after the change, got none"
    assert error_of(MessageTyper("goldengate", Tables()).add, text) == sentence


def test_a_change_of_another_format_is_written():
    """As the formatter would have written it."""
    row = Change(
        op="DELETE",
        source=Source(database="d", table="t"),
        key=("a",),
        before={"a": 1},
        event_time=1_700_000_001_500_000,
        transaction="9",
    )
    (text,) = from_changes([row], "goldengate", zone=ZoneInfo("UTC"))
    assert json.loads(text) == {
        "table": "d.t",
        "op_type": "D",
        "op_ts": "2023-11-14 22:13:21.500000",
        "xid": "9",
        "primary_keys": ["a"],
        "before": {"a": 1},
    }
    (text,) = from_changes([cdcavro.change.replace(row, source=Source(table="t", schema="s"))], "goldengate")
    assert json.loads(text)["table"] == "s.t"
    assert from_changes([Change(op="HEARTBEAT"), Change(op="CREATE", ddl="CREATE TABLE t (a INT)")], "goldengate") == []
    assert from_changes([Change(op="SNAPSHOT", after={"a": 1})], "goldengate") == [b'{"op_type":"I","after":{"a":1}}']


KEY = {"primary_keys": ["ID"]}
ROWS = [
    message(**KEY, after={"ID": 1, "A": "x", "N": 1.5, "W": "2023-11-14 22:13:21.25"}),
    message(**KEY, op_type="U", before={"ID": 1, "A": "x"}, after={"ID": 1, "A": None}),
    message(**KEY, op_type="U", before={"ID": 1, "N": 2}, after={"ID": 1, "N": 3, "A": "y"}, current_ts="x"),
    message(**KEY, op_type="U", after={"ID": 1, "N": 3}, pos="00000000000000000000157"),
    message(**KEY, xid="1.2.3", tokens={"R": "AADPkv", "6": "9.0.1"}, after={"ID": 2, "A": "z"}),
    message(**KEY, tokens={"R": "AADPkv", "6": "9.0.1"}, after={"ID": 2, "A": "z"}),
    message(**KEY, op_type="D", before={"ID": 2}, after=None, pos="9"),
]
MARKED = [
    message(**KEY, after={"ID": 1, "ID_isMissing": False, "A": None, "A_isMissing": True}),
    message(**KEY, after={"ID": 1, "ID_isMissing": False, "A": None, "A_isMissing": False}),
]
TYPES = {"S.T": {"ID": "int", "A": "varchar(9)", "N": "double", "W": "datetime(3)"}}


def typer_of(texts: list[str], types: dict[str, dict[str, str]] = TYPES) -> MessageTyper:
    """Return a typer that has typed each of some messages twice, and so knows their table and patterns."""
    typer = MessageTyper("goldengate", Tables(given=TypeOverrides.from_mapping(types), zone=ZONE))
    for text in (*texts, *texts):
        typer.add(text, Arrival(file="f", line=1))
    return typer


@COMPILED_ONLY
def test_the_engine_types_all_rows():
    """Those without companions."""
    typer = typer_of(ROWS)
    assert [typer.type_by_pattern(text.encode()) is not None for text in ROWS] == [True] * len(ROWS)


@COMPILED_ONLY
def test_the_engine_types_as_the_exact_way_does():
    """Also messages that were damaged: they have the same rows, or are left."""
    typer, random, typed = typer_of([*ROWS, *MARKED]), Random(32), 0
    tables = typer._tables
    for _ in range(3000):
        text = mutated(random, random.choice([*ROWS, *MARKED]).encode())
        rows = typer.type_by_pattern(text)
        if rows is not None:
            exact = [
                one for found in to_changes(text, "goldengate", members=False, zone=ZONE) for one in tables.add(found)
            ]
            assert [(row.key, row.payload) for row in rows] == [(one.key, one.payload) for one in exact]
            typed += 1
    assert typed > 100


def test_companions_go_the_exact_way_and_are_no_columns():
    """Also where a column is called like one: in one message it is a column, and in another it says something."""
    typer = typer_of(MARKED)
    assert [typer.type_by_pattern(text.encode()) for text in MARKED] == [None, None]
    rows = [read(row.payload, row.schema.envelope)["after"] for text in MARKED for row in typer.add(text)]
    assert [(row["A"], row["absent"]) for row in rows] == [(None, ["A"]), (None, [])]
    assert [column.name for column in typer._tables.tables[0].schema.columns] == ["ID", "A"]
    own = message(**KEY, after={"ID": 1, "ID_isMissing": "no"})
    typer = typer_of([own])
    assert typer.type_by_pattern(own.encode()) is None
    (row,) = typer.add(message(**KEY, after={"ID": 1, "ID_isMissing": False}))
    assert read(row.payload, row.schema.envelope)["after"]["absent"] == ["ID_isMissing"]


def test_values_are_of_the_type_that_is_given():
    """Numbers may come as texts (`treatAllColumnsAsStrings`); a time of another spelling is kept as text."""
    typer = MessageTyper("goldengate", Tables(given=TypeOverrides.from_mapping(TYPES), zone=ZONE))
    (row,) = typer.add(message(**KEY, after={"ID": "1", "N": "1.5", "W": "1993-11-03:07:51:35"}))
    after = read(row.payload, row.schema.envelope)["after"]
    assert (after["ID"], after["N"], after["W"], after["unparsed"]) == (1, 1.5, None, {"W": "1993-11-03:07:51:35"})
