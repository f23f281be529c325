"""Messages straight to typed rows: the rows that the exact way makes, whichever way a message goes."""

from __future__ import annotations

import io
import json
import pickle
from random import Random
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from cdcavro.change.model import Arrival, Change, Column, Source, replace
from cdcavro.engine.machine import COMPILED, RowEngine
from cdcavro.engine.program import RowProgram
from cdcavro.errors import StructureError
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.transcoding.mapping import to_changes
from cdcavro.wire.formats import FORMATS, get_format
from support import stream_trial
from support.messages import ROW_FORMATS
from support.rows_trial import (
    BY_ENGINE,
    LEFT,
    REFUSED,
    TYPES,
    VALUES,
    ZONE,
    Pair,
    of_type,
    shop,
    trial,
    trial_of_type,
    types_of,
)
from support.typed import read

if TYPE_CHECKING:
    from cdcavro.table.tables import TypedChange

compiled = pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
CANAL = {
    "database": "shop",
    "table": "t",
    "type": "INSERT",
    "isDdl": False,
    "id": 1,
    "es": 1700000000000,
    "ts": 1700000000001,
    "gtid": "",
    "pkNames": ["id"],
    "mysqlType": {"id": "bigint", "v": "varchar(9)"},
    "sqlType": {"id": -5, "v": 12},
    "old": None,
    "data": [{"id": "1", "v": "a"}],
}


def canal(**members: object) -> bytes:
    """Return a message of Canal with other members."""
    return json.dumps(CANAL | members).encode()


def outcomes(messages: list[bytes], format: str = "canal", **options: object) -> list[str]:
    """Take messages both ways, which have to agree, and return what became of each."""
    pair = Pair(format, ZONE)
    for name, value in options.items():
        setattr(pair, name, value)
    return [pair.take(message) for message in messages]


@pytest.mark.parametrize("format", FORMATS)
def test_the_changes_of_a_database_are_typed_as_the_exact_way_types_them(format):
    """Statements, rows of evolving tables, halves: the engine takes most, and both ways make the same rows."""
    pair = Pair(format, ZONE)
    taken = [pair.take(message) for message in shop(format)]
    if COMPILED and format != "datahub_blob" and format in ROW_FORMATS:  # whose values of MySQL's types do not fit
        assert taken.count(BY_ENGINE) > 90


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("format", FORMATS)
def test_values_of_all_types_are_typed_as_the_exact_way_types_them(format):
    """What the engine takes for a type is what the type's reader gives; it leaves the rest."""
    random = Random(format)
    for declared in TYPES:
        trial_of_type(format, declared, [*random.sample(VALUES, 4), '"1"', random.choice(VALUES)])


@compiled
@pytest.mark.slow
@pytest.mark.parametrize("format", ROW_FORMATS)
def test_every_value_in_every_type_is_typed_as_the_exact_way_types_it(format):
    """Both ends of each type, each form of a time, labels, bytes, and all that does not fit.

    Of types with the same rules in a format, values are tried in one; `test_values_of_all_types` has some of each.
    """
    types = types_of(format)
    assert sum(trial_of_type(format, declared, VALUES)[BY_ENGINE] for declared in types) > 65 * len(types)


@compiled
def test_values_that_were_given_for_rows_that_have_none_are_refused():
    """An insert may have an `old` that says nothing, but no values there."""
    nothing, something = canal(old=[None]), canal(old=[{"v": "b"}])
    assert outcomes([nothing, nothing, something, nothing]) == [LEFT, BY_ENGINE, "refused", BY_ENGINE]


@compiled
def test_empty_lists_of_types_state_no_columns():
    """The row is one of the columns that were stated before."""
    first, blank = canal(), canal(mysqlType={}, sqlType={})
    assert outcomes([first, first, blank, blank, first]) == [LEFT, BY_ENGINE, LEFT, LEFT, BY_ENGINE]
    typer = MessageTyper("canal", Tables())
    assert {one.schema.version for message in (first, blank, first) for one in typer.add(message)} == {1}


@compiled
def test_a_full_load_of_datahub_is_told_by_its_number():
    """The number is -1, which makes a snapshot of what an insert would be."""
    (insert, *_) = of_type("datahub_blob", "LONG")
    sent = insert.replace(b'"value of v"', b"7")
    message = json.loads(sent)
    message["payload"]["sequenceId"] = "-1"
    loaded = json.dumps(message).encode()
    typer = MessageTyper("datahub_blob", Tables())
    assert [typer.add(one)[0].op for one in (sent, sent, loaded, loaded, sent)] == [
        *("INSERT", "INSERT", "SNAPSHOT", "SNAPSHOT", "INSERT")
    ]
    assert outcomes([sent, sent, loaded, loaded, sent], "datahub_blob") == [LEFT, BY_ENGINE, LEFT, BY_ENGINE, BY_ENGINE]


@compiled
def test_the_number_of_a_binlog_has_all_its_digits():
    """Of the name of its file, which ends with them."""
    (insert, *_) = of_type("debezium", "varchar(20)")
    message = json.loads(insert)
    sent = []
    names = (
        "bin.000002",
        "bin.000003",
        "bin.000123",
        "b1n.1234567",
        "bin.999999999999999999",
        "bin.1999999999999999999",
        "7",
    )
    for name in names:
        message["value"]["payload"]["source"] |= {"file": name, "pos": 5, "row": 1}
        sent.append(json.dumps(message).encode())
    assert outcomes(sent, "debezium") == [LEFT] + [BY_ENGINE] * (len(names) - 1)


@compiled
def test_a_time_before_the_first_that_is_known_goes_the_exact_way():
    """Clocks in Shanghai were ahead by another hour in summers of the forties."""
    (insert, *_) = of_type("oms_shareplex", "int")
    message = json.loads(insert.replace(b'"value of v"', b"7"))
    sent = []
    for time in ("2024-02-29T12:00:00", "2024-02-29T12:00:01", "1941-07-01T00:00:00", "1969-12-31T23:59:59"):
        message["meta"]["time"] = time
        sent.append(json.dumps(message).encode())
    assert outcomes(sent, "oms_shareplex") == [LEFT, BY_ENGINE, LEFT, LEFT]


@compiled
@pytest.mark.parametrize("format", ROW_FORMATS)
def test_plain_values_of_common_types_go_through_the_engine(format):
    """A test of equality alone would pass if the engine left everything."""
    plain = {"varchar(20)": '"text"', "date": '"2024-02-29"'}
    plain |= (
        {"bigint": '"7"' if format == "canal" else "7"} if format != "datahub_blob" else {"LONG": "7", "STRING": '"x"'}
    )
    for declared, value in plain.items():
        if format == "datahub_blob" and declared == "date":
            continue
        assert trial_of_type(format, declared, [value] * 4)[BY_ENGINE] >= 6, declared


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("format", FORMATS)
def test_damaged_messages_fail_alike(format):
    """Rows, errors and their sentences are the same, at any place of arrival, with or without a time zone."""
    trial(format, 40, 1)
    trial(format, 20, 2, None)


BESIDE = {
    "oms_default": [
        '{"prevStruct":ROW,"postStruct":{"id":1},"allMetaData":{"table_name":"t","db":"d"},"recordType":"INSERT"}',
        '{"prevStruct":{"id":1},"postStruct":ROW,"allMetaData":{"table_name":"t","db":"d"},"recordType":"DELETE"}',
    ],
    "oms_shareplex": [
        '{"data":{"id":1},"meta":{"op":"ins","table":"d.t"},"key":ROW}',
        '{"data":{"id":1},"meta":{"op":"del","table":"d.t"},"key":ROW}',
    ],
}


@pytest.mark.parametrize(("format", "text"), [(format, text) for format in BESIDE for text in BESIDE[format]])
@compiled
def test_an_empty_row_where_the_operation_has_none_is_taken_and_another_is_not(format, text):
    """Messages with the two have the same pattern, and what is in the other row would be lost."""
    empty, full, none = (text.replace("ROW", row).encode() for row in ("{}", '{"id":2}', "null"))
    made = outcomes([empty, none, empty, none, full, empty], format)
    assert made == [LEFT, LEFT, BY_ENGINE, BY_ENGINE, "refused", BY_ENGINE]


@compiled
def test_a_pattern_is_known_from_its_second_message_on():
    """Another table, operation or list of columns is another pattern; other values, times and numbers are not."""
    another = {"mysqlType": {"id": "bigint"}, "sqlType": {"id": -5}, "data": [{"id": "2"}], "table": "u"}
    messages = [canal(), canal(es=5, id=9, data=[{"v": None, "id": "2"}]), canal(type="DELETE"), canal(type="DELETE")]
    messages += [canal(**another), canal(), canal(), canal(**another), canal(**another)]
    found = outcomes(messages)
    assert found == [LEFT, BY_ENGINE, LEFT, BY_ENGINE, LEFT, LEFT, BY_ENGINE, BY_ENGINE, BY_ENGINE]


@compiled
def test_what_an_edit_of_a_table_changes_is_learned_anew():
    """A statement, or a new list of columns, ends what was learned; rows of the version before still find it."""
    wider = {"mysqlType": CANAL["mysqlType"] | {"w": "int"}, "sqlType": CANAL["sqlType"] | {"w": 4}}
    row = wider | {"data": [{"id": "1", "v": "a", "w": "5"}], "id": 5}
    ddl = canal(type="ALTER", isDdl=True, sql="ALTER TABLE t ADD w int", data=None, mysqlType=None, sqlType=None, id=4)
    found = outcomes([canal(), canal(), ddl, canal(**row), canal(**row), canal(), canal()])
    assert found == [LEFT, BY_ENGINE, LEFT, LEFT, BY_ENGINE, LEFT, BY_ENGINE]


@compiled
def test_many_rows_and_old_values_come_from_one_message():
    """Beside each row of an update stand the values that its changed columns had; a changed key goes the exact way."""
    update = {"type": "UPDATE", "data": [{"id": "1", "v": "b"}, {"id": "2", "v": "c"}], "old": [{"v": "a"}, {"v": "b"}]}
    moved = update | {"old": [{"v": "a"}, {"id": "3"}]}
    fewer = update | {"old": [{"v": "a"}]}
    more = update | {"old": [{"v": "a"}, {"v": "b"}, {"v": "c"}]}
    none = update | {"old": []}
    messages = [canal(**members) for members in (update, update, moved, fewer, more, none, update)]
    assert outcomes(messages) == [LEFT, BY_ENGINE, LEFT, "refused", "refused", BY_ENGINE, BY_ENGINE]


@compiled
def test_an_empty_old_makes_no_row_before_an_update():
    """The key is that of the row after it, and the other rows of the message have their own."""
    rows = [{"id": "1", "v": "b"}, {"id": "2", "v": "c"}]
    update = canal(type="UPDATE", data=rows, old=[{}, {"v": "a"}])
    assert outcomes([canal(), update, update, canal(old=[{}])]) == [LEFT, LEFT, BY_ENGINE, LEFT]
    typer = MessageTyper("canal", Tables())
    for line, message in enumerate((canal(), update, update)):
        typed = typer.add(message, Arrival(file="f", line=line))
    images = [read(one.payload, one.schema.envelope) for one in typed]
    assert [one["before"] and one["before"]["v"] for one in images] == [None, "a"]
    assert [read(one.key, one.schema.key)["id"] for one in typed] == [1, 2]


@compiled
@pytest.mark.parametrize("member", ["gtid", "sql"])
def test_what_all_rows_repeat_of_their_message_is_bounded(member):
    """The transaction and the statement, too, which do not belong to a pattern; otherwise a small message fills the memory."""
    rows = [{"id": str(number), "v": "a"} for number in range(2_000)]
    messages = [canal(**{member: text}, data=rows) for text in ("t", "t" * 100_000)]
    assert outcomes([canal(**{member: "t"}), *messages]) == [LEFT, BY_ENGINE, REFUSED]


@compiled
def test_misfits_unknown_columns_and_contradictions_go_the_exact_way():
    """They are counted, refused or learned there."""
    messages = [
        canal(),
        canal(data=[{"id": "x", "v": "a"}]),
        canal(data=[{"id": "1", "w": "a"}]),
        canal(data=[{"id": "1"}]),
    ]
    messages += [canal(old=[{"v": "b"}]), canal(data=[None]), canal(data=[])]
    assert outcomes(messages) == [LEFT, LEFT, "refused", BY_ENGINE, "refused", "refused", "refused"]


@compiled
def test_the_word_for_unavailable_values_is_no_value():
    """A row that may lack a value goes the exact way, whatever form the word has; with no word, it is a text."""
    messages = of_type("debezium", "string")[:1]
    values = [b'"x"', b'"y"', b'"__debezium_unavailable_value"', b'["__debezium_unavailable_value"]', b'"z"']
    sent = [messages[0].replace(b'"value of v"', value) for value in values]
    assert outcomes(sent, "debezium") == [LEFT, BY_ENGINE, LEFT, LEFT, BY_ENGINE]
    typer = MessageTyper("debezium", Tables(), unavailable=None)
    assert [len(typer.add(message)) for message in sent] == [1] * 5
    assert typer.taken == 3


SOURCE = {"connector": "mysql", "db": "d", "table": "t"}
BINLOG = {"file": "b.000001", "row": 0}
OUTSIDE = [
    ({}, {"ts_ms": -1}, {"ts_ms": 5}),
    ({}, {"ts_us": -1}, {"ts_us": 5}),
    ({}, {"transaction": {"id": ""}}, {"transaction": {"id": "x"}}),
    ({}, {"source": {"gtid": ""}}, {"source": {"gtid": "x"}}),
    (BINLOG, {"source": {"pos": -1}}, {"source": {"pos": 5}}),
]


@pytest.mark.parametrize(("inside", "empty", "told"), OUTSIDE)
def test_what_stands_around_the_value_of_a_record_is_not_of_its_rows(inside, empty, told):
    """Also not where the pattern was learned from a message in which that says nothing."""
    value = {"before": None, "after": {"id": 1}, "source": SOURCE | inside, "op": "c"}
    outcomes([json.dumps({"value": value} | around).encode() for around in (empty, told, told)], "debezium")


@pytest.mark.parametrize(
    ("connector", "empty", "told"),
    [
        ("mysql", {"commit_scn": "b.000001", "row": 0, "pos": -1}, {"commit_scn": "b.000001", "row": 0, "pos": 5}),
        ("mysql", BINLOG | {"scn": -1}, BINLOG | {"scn": 5}),
        ("postgresql", {"commit_scn": -1}, {"commit_scn": 5}),
        ("oracle", {"scn": "7", "commit_scn": "8", "row": 0}, {"scn": "7", "commit_scn": "8", "row": 5}),
    ],
)
def test_each_connector_tells_positions_by_members_of_its_own(connector, empty, told):
    """A member that another connector has says nothing."""
    values = [
        {"before": None, "after": {"id": 1}, "source": SOURCE | {"connector": connector} | numbers, "op": "c"}
        for numbers in (empty, told, told)
    ]
    assert outcomes([json.dumps(value).encode() for value in values], "debezium")[0] == LEFT


def test_a_key_beside_its_schema_is_not_taken_for_one_of_two_columns():
    """A table may have columns of these names, which hold just that."""
    pair = Pair("debezium", None)
    pair.typer = MessageTyper("debezium", pair.tables, unavailable=None)
    for key, after in (({"id": 1}, 5), ({"id": 1}, 5), ({"x": 5}, 6)):
        image = {"id": 1, "x": 5, "schema": None, "payload": key}
        value = {"before": image, "after": image | {"x": after}, "source": SOURCE, "op": "u"}
        pair.take(json.dumps({"key": {"schema": None, "payload": key}, "value": value}).encode())


@pytest.mark.slow
def test_a_message_is_placed_by_its_kafka_record_and_by_the_caller():
    """What the caller knows goes before what the record says, field by field."""
    pair = Pair("debezium", None)
    for message in shop("debezium"):
        pair.take(message, Arrival(partition=3, offset=9))
        pair.take(message, Arrival(topic="mine"))


def test_a_topic_that_is_told_names_the_table_whatever_the_record_before_it_was():
    """The topic of a row that names no table belongs to its place, not to its pattern."""
    message = b'{"topic":"own","key":{"id":1},"value":{"op":"c","before":null,"after":{"id":1}}}'
    typer = MessageTyper("debezium", Tables(table="@topic"))
    places = [None, Arrival(partition=1), Arrival(topic="other"), Arrival(topic="own"), None]
    rows = [row for place in places for row in typer.add(message, place)]
    assert [row.table.schema.table.table for row in rows] == ["own", "own", "other", "own", "own"]


@pytest.mark.parametrize("value", ["q", None, 5, {"/data": "1"}])
def test_a_member_may_be_called_as_the_field_that_keeps_unknown_members(value):
    """It is one of these, and no rows are refused for it."""
    found = outcomes([canal(extras=value), canal(extras=value)])
    assert found == [LEFT, BY_ENGINE if COMPILED else LEFT]


@compiled
def test_messages_that_are_all_different_do_not_make_everything_slow():
    """Learning costs as much as typing, so it ends where it does not help."""
    typer = MessageTyper("canal", Tables())
    for number in range(700):
        typer.add(canal(table=f"t{number % 7}", extra=number))
    assert len(typer._known) < 600


@compiled
def test_a_pattern_is_learned_once():
    """What is left of a known one, such as misfits, takes no room from others, and no patience."""
    typer = MessageTyper("canal", Tables())
    for number in range(1_000):
        typer.add(canal(data=[{"id": "x" if number % 2 else "1", "v": "a"}]))
    assert len(typer._known) == 1
    for _ in range(2):
        typer.add(canal(type="DELETE"))
    assert (len(typer._known), typer.taken) == (2, 500)


def test_a_zone_whose_clocks_change_is_taken_where_they_do_not():
    """Local times that exist twice or never are the exact way's."""
    times = {"mysqlType": {"id": "bigint", "v": "timestamp"}, "sqlType": {"id": -5, "v": 93}}
    days = [
        f"{year}-{month:02}-{day:02} 0{hour}:30:00"
        for year in (1986, 1991, 2024)
        for month in (4, 5, 9)
        for day in (5, 15)
        for hour in (1, 2)
    ]
    messages = [canal(**times, data=[{"id": "1", "v": day}]) for day in days]
    assert "refused" not in outcomes(messages)


@compiled
def test_patterns_take_a_bounded_room():
    """Wide tables and long names cannot fill the memory: what has no room goes the exact way."""
    engine = RowEngine(get_format("canal").program)
    program = RowProgram(texts=bytes(1 << 20))
    assert sum(engine.add(bytes([number]), program) for number in range(100)) == 63
    engine.clear()
    assert engine.add(b"again", program)


@pytest.mark.slow
def test_rows_that_lack_columns_out_of_all_proportion_are_refused():
    """Names of absent columns stand in each row: short rows of a wide table would make gigabytes of a small message."""
    typer = MessageTyper("canal", Tables())
    columns = [f"column_{i}" for i in range(2_000)]
    typer.add(stream_trial.statement(1, "t", f"CREATE TABLE t ({' INT,'.join(columns)} INT)", "CREATE"))
    sent = json.loads(stream_trial.row(2, "t", columns[:1])) | {"mysqlType": None, "pkNames": None}
    few, many = (json.dumps(sent | {"data": [{"column_1": "1"}] * count}) for count in (100, 1_000))
    assert [len(typer.add(few)) for _ in range(3)] == [100] * 3
    refused = "expected at most 8388608 bytes of names of absent columns in 1000 rows, got 22881000"
    for _ in range(2):
        with pytest.raises(StructureError, match=refused):
            typer.add(many)


def maxwell(type: str, id: int, **data: object) -> bytes:
    """Return a message of Maxwell's, which names the key of its row."""
    members = {"database": "d", "table": "t", "type": type, "ts": 1700000000 + id, "primary_key_columns": ["id"]}
    return json.dumps(members | {"data": {"id": id} | data}).encode()


@pytest.mark.parametrize("format", ["maxwell", "canal"])
@pytest.mark.parametrize("absent", ["unstated", "null"])
def test_what_the_row_after_a_change_lacks_is_null_if_it_is_said_so(format, absent):
    """Rows before a change lack it anyway, and of many rows the engine makes what the exact way does."""
    random, messages, names = Random(32), [], ("a", "b", "c")
    for number in range(300):
        row = {name: str(number) for name in names if random.random() < 0.6 or number < 3}
        old = {"a": "x"} if random.random() < 0.5 else {"b": "y"}
        operation = random.choice(("INSERT", "UPDATE", "DELETE"))
        if format == "canal":
            types = {"mysqlType": dict.fromkeys(("id", *names), "varchar(9)"), "sqlType": None}
            more = {"old": [old]} if operation == "UPDATE" else {}
            messages.append(canal(type=operation, data=[{"id": str(number)} | row], **types, **more))
        else:
            message = json.loads(maxwell(operation.lower(), number, **row))
            messages.append(json.dumps(message | ({"old": old} if operation == "UPDATE" else {})).encode())
    exact_way, tables = Tables(absent=absent), Tables(absent=absent)
    typer, place = MessageTyper(format, tables), Arrival(topic="t", partition=0, offset=1)
    typed = [row for message in messages for row in typer.add(message, place)]
    placed = [
        replace(change, place=place) for message in messages for change in to_changes(message, format, members=False)
    ]
    expected = [one for change in placed for one in exact_way.add(change)]
    assert [(row.key, row.payload) for row in typed] == [(one.key, one.payload) for one in expected]
    assert not COMPILED or typer.taken > 100
    lacking = [one for one in expected if one.change.op != "DELETE" and one.absent]
    assert bool(lacking) is (absent == "unstated")
    befores = [rows_of(one)["before"] for one in expected if one.change.op == "DELETE"]
    assert any(before["absent"] for before in befores)
    afters = [rows_of(one)["after"] for one in expected if one.change.op != "DELETE"]
    assert any(after["c"] is None and "c" not in after["absent"] for after in afters) is (absent == "null")


def test_a_key_and_what_a_source_did_not_have_are_not_filled_with_null():
    """The key of a row is never null, and Debezium says of an unavailable value that there is one."""
    source, columns = Source(format="canal", table="t"), (Column(name="id", type="int"), Column(name="v", type="int"))
    tables = Tables(absent="null")
    whole = Change(op="INSERT", source=source, key=("id",), columns=columns, after={"id": 1, "v": 2})
    tables.add(whole)
    (made,) = tables.add(replace(whole, op="UPDATE", after={"id": 1}, unavailable=("v",)))
    assert made.absent == ("v",)
    (made,) = tables.add(replace(whole, op="UPDATE", after={"id": 1}))
    assert (made.absent, made.change.after) == ((), {"id": 1, "v": None})
    with pytest.raises(StructureError):
        tables.add(replace(whole, after={"v": 3}))


def test_what_absent_columns_are_is_one_of_two():
    """And it goes along to another process."""
    with pytest.raises(ValueError, match="absent is unstated or null, not 'none'"):
        Tables(absent="none")
    assert pickle.loads(pickle.dumps(Tables(absent="null"))).fills_absent


def rows_of(typed: TypedChange) -> dict[str, Any]:
    """Return a typed change as fastavro reads it."""
    return fastavro.schemaless_reader(io.BytesIO(typed.payload), json.loads(typed.schema.envelope.json))


def test_what_a_format_says_of_its_rows_is_looked_up_once(monkeypatch: pytest.MonkeyPatch):
    """Rejects that are read again have a typer each, and it would take longer than all else."""
    MessageTyper("canal", Tables())
    monkeypatch.setattr("cdcavro.wire.message_program.marked_paths", None)
    MessageTyper("canal", Tables())
