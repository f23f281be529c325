r"""The order value: the order of a change as one binary value, which compares in SQL as `order_key` does in Python.

A value is compared byte by byte, as unsigned numbers, which is how SQL compares BINARY. Its parts
follow one another so that no value is the beginning of another unless the two are equal:

| part | bytes |
| --- | --- |
| phase | 0 for a statement read in a snapshot, 1 for a row of a full load, 2 for any other change |
| kind | what orders the change, as in `KINDS`; changes of one table have one kind |
| numbers | those of the source; under a clock those of its lane's time, and how many keys moved in it |
| place | topic, partition, offset, file as `file_order` spells it, line |
| ties | where the place is the order: the kind of the numbers, and the numbers |
| part | 0 for the delete of a key that the message moves away, 1 for anything else |
| row | the row within the message |

An integer is a byte that says its sign and length, 128 for zero, and then its bytes; a list of them
ends in a zero byte. A text is UTF-8, in which a zero byte is written `00 ff`, and ends in `00 00`.

A pipeline puts the order of a table's last reset (`reset_order`), a 3 and the reset's number, before the values
of all changes that it reads behind that reset: whatever their values say, they come behind all changes before it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from cdcavro.change.order import (
    is_batched,
    is_by_arrival,
    is_by_numbers,
    is_full_load,
    kind_of_numbers,
    order_key,
    rank_of_numbers,
)
from cdcavro.errors import StructureError, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdcavro.change.model import Change
    from cdcavro.change.order import LaneTime

# What orders a change, by the second byte of its value; the last three are places under a clock.
KINDS: Final = (
    "a full load",
    "no numbers",
    "the number of a batch without its time",
    "numbers",
    "a place that says the order",
    "a place and no numbers",
    "a place and the number of a batch without its time",
    "a place and numbers",
)
_FULL_LOAD: Final = 0
_BY_NUMBERS: Final = 1
_BY_PLACE: Final = 4
_UNDER_A_CLOCK: Final = 5
_ZERO: Final = 128
_MOST: Final = 126
_END: Final = b"\0"
_END_OF_TEXT: Final = b"\0\0"
_KEPT: Final = 1_000
_MIN_LENGTH: Final = 2


def order_value(change: Change, *, time: LaneTime | None = None, is_left: bool = False) -> bytes:
    """Return the order of a change as one value, which compares bytewise as the keys of `order_key` do.

    `time` (`LaneTime`) is what a `Clock` says of the change's message: it puts changes whose true order is that of
    arrival in one order across topic partitions and files, as `in_order` does. `is_left` says that the change is the
    delete of a key that its message moves away: it comes before the other rows of that message, so that it does not
    override one that takes the key.

    Values of one table compare only if `order_kind` is the same for all changes, or the change is of a full
    load. Raises `OrderError` for a change that has neither numbers nor a place, and `StructureError` for a
    number of more than 126 bytes.

    >>> from cdcavro.change.model import Change
    >>> order_value(Change(op="INSERT", position=(7, 9))) < order_value(Change(op="UPDATE", position=(7, 10)))
    True
    """
    key = phase, numbers, place, ties, row = order_key(change)
    first, last = _integers(numbers, change), _integers(ties, change)
    if is_by_arrival(key):
        kind, last = _BY_PLACE, bytes([rank_of_numbers(ties)]) + last
        if time is not None:
            kind = _UNDER_A_CLOCK + time.rank
            first = _integers(time.numbers, change) + _integer(time.moves, change)
    else:
        kind = _BY_NUMBERS + rank_of_numbers(numbers) if kind_of_numbers(numbers) else _FULL_LOAD
    topic, partition, offset, file, line = place
    middle = _text(topic) + _integer(partition, change) + _integer(offset, change) + _text(file)
    end = bytes([not is_left]) + _integer(row, change)
    return bytes([phase + 1, kind]) + first + middle + _integer(line, change) + last + end


def order_kind(value: bytes) -> str:
    """Return what orders the change with an order value, one of `KINDS`. Raises `ValueError` for any other bytes.

    >>> from cdcavro.change.model import Change
    >>> order_kind(order_value(Change(op="INSERT", position=(7, 9))))
    'numbers'
    """
    value = split_resets(value)[1]
    if len(value) < _MIN_LENGTH or value[0] >= len(_PHASES) or value[1] >= len(KINDS):
        raise ValueError(f"{shown(value[:_MIN_LENGTH].hex())} does not begin the order of a change")
    return KINDS[value[1]]


def is_of_full_load(value: bytes) -> bool:
    """Return whether a value is of a row of a full load or of a statement before it, which precede all changes."""
    return split_resets(value)[1][0] < _CHANGE


_PHASES: Final = (-1, 0, 1)
_CHANGE: Final = _PHASES.index(1)
_RESET: Final = len(_PHASES)


def reset_order(count: int) -> bytes:
    """Return the order of a table's reset that is its `count`-th, from 1 on; empty for 0.

    It is above all changes before it. The values of changes behind it begin with it, so it is below them.

    >>> from cdcavro.change.model import Change
    >>> value = order_value(Change(op="INSERT", position=(7, 9)))
    >>> value < reset_order(1) < reset_order(1) + value < reset_order(2)
    True
    """
    size = (count.bit_length() + 7) // 8
    return bytes([_RESET, _ZERO + size]) + count.to_bytes(size, "big") if count else b""


def split_resets(value: bytes) -> tuple[int, bytes]:
    """Return how many resets of its table a change is behind, and the value without what says it.

    >>> split_resets(reset_order(300) + b"value")
    (300, b'value')
    """
    if value[:1] != bytes([_RESET]):
        return 0, value
    end = 2 + max(0, value[1] - _ZERO) if len(value) > 1 else 1
    return int.from_bytes(value[2:end], "big"), value[end:]


def common_order(change: Change) -> tuple[int, int, bool]:
    """Return what decides the order of all changes like this one, whatever their numbers, times and places.

    That is the first byte of their values; 0 for rows of a full load, 1 where numbers are the order, 2 where arrival
    is; and whether numbers without a time are those of batches.
    """
    if is_full_load(change):
        return _PHASES.index(0), 0, False
    phase = _PHASES.index(-1 if change.snapshot else 1)
    return phase, 1 if is_by_numbers(change) else 2, is_batched(change)


def _integers(numbers: Iterable[int], change: Change) -> bytes:
    return b"".join([_integer(number, change) for number in numbers]) + _END


def _integer(number: int, change: Change) -> bytes:
    """Return an integer's bytes after one that combines its sign and their count, and grows with the number."""
    length = (abs(number).bit_length() + 7) // 8
    if length > _MOST:
        raise StructureError(f"an integer of at most {_MOST} bytes", f"one of {length}", format=change.source.format)
    if number >= 0:
        return bytes([_ZERO + length]) + number.to_bytes(length, "big")
    return bytes([_ZERO - length]) + (number + (1 << 8 * length)).to_bytes(length, "big")


@lru_cache(maxsize=_KEPT)
def _text(text: str) -> bytes:
    # Python compares texts by code points, as UTF-8 does, surrogates included.
    return text.encode("utf-8", "surrogatepass").replace(b"\0", b"\0\xff") + _END_OF_TEXT
