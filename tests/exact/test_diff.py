"""Where two JSON values differ."""

from __future__ import annotations

import pytest

from cdcavro.exact.diff import differences
from cdcavro.exact.members import ABSENT
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
