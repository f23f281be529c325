"""Payloads checked by the engine, and the exact way where it leaves them."""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import TYPE_CHECKING

from cdcavro.avro.binary import Decoder
from cdcavro.avro.skip import check_payload, skipper
from cdcavro.avro.translation_program import check_program
from cdcavro.engine.machine import Translator, payload_ends
from cdcavro.errors import MessageError

if TYPE_CHECKING:
    from cdcavro.avro.schema import Schema


def check(raw: bytes, schema: Schema) -> None:
    r"""Raise `PayloadError`, with the place of the fault, unless bytes are exactly one datum of a schema.

    >>> from cdcavro.avro.schema import parse_schema
    >>> check(b"\x04ab", parse_schema('"string"'))
    """
    if _engine(schema).translate(raw) is None:
        check_payload(raw, schema)


def ends(raw: bytes, count: int, schema: Schema) -> array[int]:
    r"""Return where each of a number of data that stand one behind another ends.

    Raises `PayloadError`, its path beginning with the number of the datum, unless the bytes are exactly so many.

    >>> from cdcavro.avro.schema import parse_schema
    >>> ends(b"\x04ab\x00", 2, parse_schema('"string"'))
    array('i', [3, 4])
    """
    found = payload_ends(_engine(schema), raw, count)
    if found is not None:
        return array("i", found)
    places, check_one, position = array("i"), skipper(schema.root), 0
    for i in range(count):
        source = Decoder(raw, position)
        try:
            check_one(source)
        except MessageError as error:
            error.below(f"/{i}")
            raise
        position = source.position
        places.append(position)
    Decoder(raw, position).finish()
    return places


@lru_cache(maxsize=1024)
def _engine(schema: Schema) -> Translator:
    return Translator(check_program(schema))
