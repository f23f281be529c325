"""The machine where nothing is compiled: it leaves every message and payload to the exact way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cdcavro.avro.buffer import Buffer
    from cdcavro.engine.program import Program


COMPILED: Final = False


class Engine:
    """The engine of one program (`Program`)."""

    __slots__ = ()

    def __init__(self, program: Program) -> None:
        """Take a program, which nothing runs here."""

    def encode(self, raw: bytes) -> bytes | None:  # noqa: ARG002  what the compiled engine takes
        """Return a message as a payload; None where it is left to the exact way, as whatever is faulty is."""
        return None

    def is_plain(self, raw: bytes) -> bool:  # noqa: ARG002
        """Return whether a message is one that msgspec parses exactly, and that conforms to the schema or is noted."""
        return False

    def encode_lines(self, lines: list[bytes], first: int, out: Buffer) -> int:  # noqa: ARG002
        """Append the payloads of lines from an index on; return the index of the first line that is left, or their number."""
        return min(first, len(lines))

    def decode(self, raw: bytes) -> bytes | None:  # noqa: ARG002
        """Return a payload as text; None where it is left to the exact way."""
        return None

    def decode_lines(self, raw: bytes, position: int, count: int, out: Buffer, most: int) -> tuple[int, int]:  # noqa: ARG002
        """Append at most `count` payloads from a position on as lines of text, until `out` has `most` bytes.

        Return the position after them and their number; it stops at a payload that is left to the exact way.
        """
        return position, 0
