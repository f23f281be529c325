"""Payloads checked by the engine, and the exact way where it leaves them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from cdcavro.avro.skip import check_payload
from cdcavro.avro.translation.assembly import check_program
from cdcavro.engine.machine import Translator

if TYPE_CHECKING:
    from cdcavro.avro.schema import Schema


def check(raw: bytes, schema: Schema) -> None:
    r"""Raise `PayloadError`, with the place of the fault, unless bytes are exactly one datum of a schema.

    >>> from cdcavro.avro.schema import parse_schema
    >>> check(b"\x04ab", parse_schema('"string"'))
    """
    if _engine(schema).translate(raw) is None:
        check_payload(raw, schema)


@lru_cache(maxsize=1024)
def _engine(schema: Schema) -> Translator:
    return Translator(check_program(schema))
