"""Bounds of what 1 MB costs, whatever it says: a few of the cases of `tests/support/bounds_trial.py`, which tries more of them."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

import pytest

from cdcavro.formats.connect_columns import PLACEHOLDER
from cdcavro.transcoding.mapping import to_changes
from cdcavro.wire.formats import FORMATS
from support import bounds_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SIZE = 1_000_000
# The promise is a second of a core; machines differ, and what grows faster than its input takes many.
SECONDS = 4 * bounds_trial.MOST_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def assert_bounded(works: Iterable[tuple[str, str, Callable[[], object]]]) -> set[str]:
    """Do each work, and return of which kinds they were; none may cost more than it may, or end in an error of Python's."""
    beyond, kinds = defaultdict(list), set()
    for kind, case, work in works:
        kinds.add(kind)
        cost = bounds_trial.cost(work)
        if cost.seconds > SECONDS or cost.grown > bounds_trial.MOST_KIB:
            beyond[kind].append((case, cost))
    assert not beyond
    return kinds


@pytest.mark.parametrize("format", FORMATS)
def test_messages_and_payloads_of_a_megabyte_cost_what_they_may(format):
    """In places of the samples drawn by lot, and payloads of which counts and lengths lie, framed ones too."""
    kinds = {kind.partition(": ")[2] for kind in assert_bounded(bounds_trial.of_format(format, SIZE, 2))}
    assert {"sniff", "encode", "decode what lies", "open what lies"} <= kinds


def test_rows_without_available_values_cost_what_they_may():
    """Some 80,000 placeholders in a row."""
    row = bounds_trial.numbered('"', f'":"{PLACEHOLDER}"', 4 * SIZE)
    message = f'{{"op":"u","after":{{"id":1,{row}}}}}'
    assert_bounded([("to_changes", "placeholders", partial(to_changes, message, "debezium"))])


def test_schemas_statements_and_containers_of_a_megabyte_cost_what_they_may():
    """A hundred thousand fields, aliases and symbols, defaults of a megabyte, nesting, thousands of statements, blocks that lie."""
    assert assert_bounded(bounds_trial.others(SIZE)) == {"schema", "verdict", "statement", "container"}
