"""Values that the source did not give: in every form of their placeholder, the change does not have the column."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdcavro.change.model import Change, replace
from cdcavro.errors import StructureError
from cdcavro.exact.jsontext import parse, render, same
from cdcavro.formats.connect_columns import PLACEHOLDER, remove_unavailable
from cdcavro.table.columns.column_type import TypeOverrides
from cdcavro.table.evolution.evolve import NONE_GIVEN
from cdcavro.table.tables import Tables
from cdcavro.transcoding.mapping import from_changes, to_changes
from cdcavro.transcoding.transcoder import Transcoder, transcode
from support.typed import read

BASE64 = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="
HEX = "5f5f646562657a69756d5f756e617661696c61626c655f76616c7565"
# What java.util.UUID.nameUUIDFromBytes makes of the word.
UUID = "b68a35a7-17ad-35b3-af2a-ae46edb4545a"
FORMS = [
    PLACEHOLDER,
    BASE64,
    HEX,
    [PLACEHOLDER],
    [BASE64],
    [UUID],
    list(PLACEHOLDER.encode()),
    {PLACEHOLDER: PLACEHOLDER},
    '{"__debezium_unavailable_value":"__debezium_unavailable_value"}',
]
VALUES: list[Any] = [
    PLACEHOLDER + " ",
    [PLACEHOLDER, PLACEHOLDER],
    [],
    [None],
    [95, 95],
    {PLACEHOLDER: None},
    {},
    {"a": PLACEHOLDER, PLACEHOLDER: PLACEHOLDER},
    UUID,
    None,
    0,
    "",
]
SOURCE = {"connector": "postgresql", "db": "d", "schema": "public", "table": "t"}


def update(after: dict[str, Any], before: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the value of an update."""
    return {"before": before, "after": after, "source": SOURCE, "op": "u", "transaction": None}


def change(message: Any, **settings: Any) -> Change:
    """Return the change of a message, and assert that the message comes back from it, also through Avro."""
    (found,) = to_changes(json.dumps(message), "debezium", **settings)
    (back,) = from_changes([Change.from_avro(found.to_avro())], "debezium")
    assert same(parse(back), parse(json.dumps(message)))
    return found


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_column_with_a_placeholder_is_not_in_the_change(form):
    """Neither in the row after it nor in the row before; the message comes back as it was sent."""
    found = change(update({"id": 1, "doc": form}, {"id": 1, "doc": form}))
    assert (found.before, found.after, found.unavailable) == ({"id": 1}, {"id": 1}, ("doc",))


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_anything_else_is_a_value(value):
    """Even if it holds the word."""
    assert change(update({"id": 1, "doc": value})).after == {"id": 1, "doc": value}


@pytest.mark.parametrize(
    "around",
    [
        lambda value: {"schema": None, "payload": value},
        lambda value: {"topic": "t", "key": {"id": 1}, "value": value},
        lambda value: {"key": {"schema": {}, "payload": {"id": 1}}, "value": {"schema": None, "payload": value}},
    ],
)
def test_placeholders_are_found_in_every_shape_of_a_line(around):
    """A value alone or a record, with or without schemas."""
    assert change(around(update({"id": 1, "doc": PLACEHOLDER}))).after == {"id": 1}


@pytest.mark.parametrize(
    ("word", "form"),
    [
        ("nö", "nö"),
        ("nö", "bsO2"),
        ("nö", [110, -61, -74]),
        ("hex:fffe", "//4="),
        ("hex:fffe", "__4="),
        ("hex:fffe", "fffe"),
        ("hex:fffe", [-1, -2]),
        ("hex:fffe", "\ufffd\ufffd"),
        ("hex:6e6f", "no"),
        ("hex:6e6f", "hex:6e6f"),
        ("hex:xyz", "hex:xyz"),
    ],
)
def test_the_word_is_that_of_the_connector(word, form):
    """With `hex:` it is bytes, where the connector knows that."""
    assert change(update({"doc": form, "other": PLACEHOLDER}), unavailable=word).after == {"other": PLACEHOLDER}


def test_without_a_word_every_value_is_a_value():
    """And only words are words."""
    assert change(update({"doc": PLACEHOLDER}), unavailable=None).after == {"doc": PLACEHOLDER}
    for wrong in ("", "x" * 1001, 7, "\ud800", "x\udfff"):
        with pytest.raises(ValueError, match=r"^the word for unavailable values is a text of 1 to 1000 characters"):
            to_changes(json.dumps(update({})), "debezium", unavailable=wrong)
        with pytest.raises(ValueError, match=r"^the word for unavailable values"):
            Transcoder("debezium", "canal", unavailable=wrong)


def test_other_formats_have_no_placeholder():
    """A text is a text there."""
    message = json.dumps({"type": "INSERT", "table": "t", "data": [{"doc": PLACEHOLDER}]})
    assert to_changes(message, "oms_canal")[0].after == {"doc": PLACEHOLDER}


def test_a_line_without_placeholders_is_left_alone():
    """It is the same object."""
    line = update({"id": 1})
    assert remove_unavailable(line, PLACEHOLDER)[0] is line


def test_in_a_typed_table_the_column_is_absent():
    """With and without an embedded schema: a merge keeps what the table has."""
    fields = [{"field": "id", "type": "int32"}, {"field": "doc", "type": "string"}, {"field": "raw", "type": "bytes"}]
    schema = {"fields": [{"field": "after", "type": "struct", "fields": fields}]}
    row = {"id": 1, "doc": "text", "raw": "AQ=="}
    gone = {"id": 1, "doc": PLACEHOLDER, "raw": BASE64}
    for around in (lambda value: {"schema": schema, "payload": value}, lambda value: value):
        tables = Tables()
        (first,) = tables.add(change(around(update(row))))
        (second,) = tables.add(change(around(update(gone))))
        assert read(first.payload, first.schema.envelope)["after"]["absent"] == []
        after = read(second.payload, second.schema.envelope)["after"]
        assert (after["doc"], after["raw"], sorted(after["absent"])) == (None, None, ["doc", "raw"])


@pytest.mark.parametrize(
    "given", [NONE_GIVEN, TypeOverrides.from_mapping({"t": {"doc": "text"}})], ids=["no types", "types"]
)
def test_a_column_whose_first_value_is_not_available_is_absent(given):
    """The table has it from then on, whether nothing or only given types speak of it, in both passes of a job."""
    for stream in ([{"id": 1, "doc": PLACEHOLDER}], [{"id": 1}, {"id": 2, "doc": PLACEHOLDER}]):
        tables = Tables(given=given)
        changes = [replace(change(update(row)), position=(i,)) for i, row in enumerate(stream)]
        typed = [one for each in changes for one in tables.add(each)]
        again = tables.write(changes[-1], tables.find(changes[-1]))
        for last in (typed[-1], again[0]):
            assert [column.name for column in last.schema.columns] == ["id", "doc"]
            after = read(last.payload, last.schema.envelope)["after"]
            assert (after["id"], after["doc"], after["absent"]) == (str(len(stream)), None, ["doc"])


def test_an_unavailable_value_of_a_column_that_the_table_lacks_is_refused():
    """As a value would be: the declared columns count."""
    tables = Tables()
    fields = [{"field": "id", "type": "int32"}]
    schema = {"fields": [{"field": "after", "type": "struct", "fields": fields}]}
    tables.add(change({"schema": schema, "payload": update({"id": 1})}))
    with pytest.raises(
        StructureError, match=r"^debezium: \$\.after\.doc: expected a column of t in version 1, got none"
    ):
        tables.add(change(update({"id": 2, "doc": PLACEHOLDER})))


@pytest.mark.parametrize("target", ["canal", "oms_canal", "oms_shareplex", "oms_default"])
def test_transcoding_says_that_the_value_was_not_available(target):
    """No other format can say so: that is a loss, and the word is in no message."""
    made = transcode(json.dumps(update({"id": 1, "doc": PLACEHOLDER}, {"id": 1})), "debezium", target)
    assert PLACEHOLDER.encode() not in b"".join(made.texts)
    (loss,) = [loss for loss in made.losses if loss.path == "$.after.doc"]
    assert (loss.value, loss.reason, loss.is_of_a_value) == (f'"{PLACEHOLDER}"', f"{target} has no place for it", True)


def test_transcoding_into_the_same_format_gives_the_placeholder_back():
    """Nothing is lost."""
    message = json.dumps(update({"id": 1, "doc": PLACEHOLDER}))
    made = transcode(message, "debezium", "debezium")
    assert (made.texts, made.losses) == ([render(parse(message))], [])


def test_a_text_that_would_be_taken_for_a_placeholder_is_a_loss():
    """Whoever reads the message made takes it for one, unless the word is another."""
    message = json.dumps({"type": "INSERT", "table": "t", "data": [{"id": 1, "doc": PLACEHOLDER}]})
    (loss,) = [loss for loss in transcode(message, "oms_canal", "debezium").losses if loss.path == "$.data[0].doc"]
    assert (loss.value, loss.is_of_a_value) == (f'"{PLACEHOLDER}"', True)
    other = transcode(message, "oms_canal", "debezium", unavailable="other").losses
    assert [loss for loss in other if loss.path.startswith("$.data")] == []
