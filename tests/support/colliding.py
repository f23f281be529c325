"""Colliding texts: what the engine's hash of names gives the same value for, made as anyone can who knows it.

The hash takes 8 bytes at a time, and mixes them into its state. Two blocks that are chosen so lead from a state to a known one:
whatever the first does, the second takes it back. So some choices for each pair of blocks are that many more for the whole.
"""

from __future__ import annotations

from itertools import product
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_MASK: Final = 2**64 - 1
_FACTOR: Final = 0x9E3779B97F4A7C15
_SUM: Final = 0xFF51AFD7ED558CCD
_BLOCK: Final = 8
_LETTERS: Final = bytes(one for one in range(33, 127) if chr(one) not in '"\\')


def stirred(state: int, block: int) -> int:
    """Return the state of the hash behind a block (`cdcavro_hash` in `cdcavro/engine/scan.pxi`)."""
    whole = ((state ^ block) & _MASK) * _FACTOR
    return ((whole & _MASK ^ whole >> 64) + _SUM) & _MASK


def colliding(before: bytes, pairs: int, choices: int) -> Iterator[bytes]:
    """Yield texts of 16 bytes for each pair of blocks, `choices ** pairs` of them, which the hash has one value for.

    `before` stands before each in what is hashed, whole blocks of it, and nothing behind it.
    """
    random = Random(18)
    state = len(before) + 2 * _BLOCK * pairs
    for at in range(0, len(before), _BLOCK):
        state = stirred(state, _number(before[at : at + _BLOCK]))
    found: list[list[bytes]] = []
    for _ in range(pairs):
        blocks, target = _pair_of_blocks(random, state, choices)
        found.append(blocks)
        state = target
    for parts in product(*found):
        yield b"".join(parts)


def _pair_of_blocks(random: Random, state: int, choices: int) -> tuple[list[bytes], int]:
    """Return pairs of blocks of plain letters that lead from a state to one and the same, and that."""
    same, found = random.getrandbits(64) & ~(0x80 * 0x0101010101010101), list[bytes]()
    while len(found) < choices:
        one = bytes(random.choices(_LETTERS, k=_BLOCK))
        other = (stirred(state, _number(one)) ^ same).to_bytes(_BLOCK, "little")
        if all(letter in _LETTERS for letter in other):
            found.append(one + other)
    return found, stirred(same, 0)


def _number(block: bytes) -> int:
    return int.from_bytes(block, "little")
