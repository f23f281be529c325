"""The order of fields behaves as a list does, and finds each field at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cdcavro.table.evolution.field_order import FieldOrder
from cdcavro.table.fields import MISSING_FIELD, UNPARSED_FIELD


def _field(name):
    return {"name": f"c{name}", "type": "int"}


def _place(listed):
    """Return the index behind the last column."""
    place = len(listed)
    while place and listed[place - 1]["name"] in ("unparsed", "absent"):
        place -= 1
    return place


@given(st.integers(0, 4), st.lists(st.tuples(st.sampled_from("flabr"), st.integers(0, 99)), max_size=30))
def test_fields_stand_where_a_list_has_them(count, edits):
    """First, last of the columns, behind and before others, and taken out, in any sequence."""
    listed = [*map(_field, range(count)), UNPARSED_FIELD, MISSING_FIELD]
    order = FieldOrder(listed)
    for number, (edit, at) in enumerate(edits):
        new, columns = _field(100 + number), listed[: _place(listed)]
        known = columns[at % len(columns)] if columns else None
        if edit == "f":
            order.put(new, first=True)
            listed.insert(0, new)
        elif edit == "l" or known is None:
            order.put(new)
            listed.insert(_place(listed), new)
        elif edit == "a":
            order.put(new, after=known)
            listed.insert(listed.index(known) + 1, new)
        elif edit == "b":
            order.put_before(new, known)
            listed.insert(listed.index(known), new)
        else:
            order.remove(known)
            listed.remove(known)
        assert order.fields() == listed


def test_a_field_among_many_is_found_at_once():
    """To go through all of them for each would take hours."""
    fields = list(map(_field, range(100_000)))
    order = FieldOrder(fields)
    for field in reversed(fields):
        order.remove(field)
        order.put(field, after=fields[0] if field is not fields[0] else None)
    assert len(order.fields()) == 100_000
