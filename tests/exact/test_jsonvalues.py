"""Where two JSON values differ."""

from __future__ import annotations

import pytest

from cdcavro.exact.jsontext import ABSENT, differences
from cdcavro.exact.numbers import ExactNumber


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": 1.0}, [("/a", 1, 1.0)]),
        ({"a": 0.0}, {"a": -0.0}, [("/a", 0.0, -0.0)]),
        ({"a": True}, {"a": 1}, [("/a", True, 1)]),
        ({"a": ExactNumber("1.20")}, {"a": ExactNumber("1.2")}, [("/a", ExactNumber("1.20"), ExactNumber("1.2"))]),
        ({"a/b": None}, {}, [("/a~1b", None, ABSENT)]),
        ({}, {"c": []}, [("/c", ABSENT, [])]),
        ([1, [2, 3]], [1, [2, 4]], [("/1/1", 3, 4)]),
        ([1], [1, 2], [("", [1], [1, 2])]),
        ([], {}, [("", [], {})]),
        ({"a/b": {"c": None}}, {"a/b": {"c": ""}}, [("/a~1b/c", None, "")]),
    ],
)
def test_differences_are_named_by_pointer_with_both_values(left, right, expected):
    """Objects member by member, arrays of one length item by item, everything else as a whole."""
    assert list(differences(left, right)) == expected


@pytest.mark.parametrize(
    "around", [lambda value: [value], lambda value: {"a": value}, lambda value: [[{"a": [value]}]]]
)
def test_values_that_are_nothing_are_told_apart(around):
    """Zero from minus zero, false, the empty string, an empty array, an empty object, null, and from being absent."""
    nothing = [0, 0.0, -0.0, ExactNumber("-0"), False, "", [], {}, None]
    for i, left in enumerate(nothing):
        for j, right in enumerate(nothing):
            assert (list(differences(around(left), around(right))) == []) is (i == j)
    assert [found[0] for found in differences({"a": None, "b": []}, {"c": {}})] == ["/a", "/b", "/c"]


def test_a_long_name_above_many_equal_items_is_not_spelled_out():
    """It would be copied for each of them."""
    name, items = "n" * 1_000_000, [[i] for i in range(100_000)]
    assert [pointer[-7:] for pointer, _, _ in differences({name: [*items, [1]]}, {name: [*items, [2]]})] == ["00000/0"]
