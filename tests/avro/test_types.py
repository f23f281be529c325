"""What is nested where a caller has used up most of Python's stack."""

from __future__ import annotations

import json
import sys

import pytest

from cdcavro.avro.binary import check_payload
from cdcavro.avro.compatibility import verdict
from cdcavro.avro.resolution import Aliases, findings, resolve
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.translation import translator
from cdcavro.avro.types import STACK_GOT
from cdcavro.errors import PayloadError, SchemaError
from support.wire import field, record

OLDER = record(field("v"), field("next", ["null", "N"]), name="N")
NEWER = record(field("v", "double"), field("next", ["null", "N"]), name="N")
LIST = b"\2\2" * 127 + b"\2\0"


def deep(rest: int, call):
    """Call a function where that many frames are left, more or less."""
    used, frame = 0, sys._getframe()
    while frame is not None:
        used, frame = used + 1, frame.f_back

    def down(count):
        return call() if count <= 0 else down(count - 1)

    return down(sys.getrecursionlimit() - used - rest)


def chain() -> str:
    """Return the text of a schema of 100 records in each other."""
    made = record(field("v"), name="X")
    for level in range(99):
        made = record(field("n", made), name=f"C{level}")
    return json.dumps(made)


@pytest.mark.parametrize("rest", [60, 100, 150])
def test_a_payload_that_the_stack_has_no_room_for_is_an_error_of_ours(rest):
    """Checked, copied or translated; with room it is read."""
    older, newer = parse_schema(json.dumps(OLDER)), parse_schema(json.dumps(NEWER))
    same, other = translator(older, older), translator(older, newer)
    for call in (lambda: check_payload(LIST, older), lambda: same(LIST), lambda: other(LIST)):
        call()
        with pytest.raises(PayloadError, match=STACK_GOT):
            deep(rest, call)
        call()


@pytest.mark.parametrize("rest", [60, 100, 150, 350])
def test_a_schema_that_the_stack_has_no_room_for_is_an_error_of_ours(rest):
    """Parsed, compared, judged or made a translation; with room it is read."""
    text = chain()
    schema = parse_schema(text)
    for call in (
        lambda: parse_schema(text),
        lambda: resolve(schema.root, schema.root),
        lambda: findings(Aliases(schema.root), Aliases(schema.root)),
        lambda: verdict(schema, schema),
        lambda: translator(schema, schema),
    ):
        call()
        with pytest.raises(
            SchemaError, match=STACK_GOT if rest > 150 else f"{STACK_GOT}|not JSON: maximum recursion depth"
        ):
            deep(rest, call)
