"""The machine where nothing is compiled: it leaves every message and payload to the exact way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cdcavro.engine.arrow_column import Slices
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

    def decode(self, raw: bytes) -> bytes | None:  # noqa: ARG002
        """Return a payload as text; None where it is left to the exact way."""
        return None

    def encode_text(self, text: bytes, position: int) -> tuple[bytes, int, int]:  # noqa: ARG002
        """Return the payloads of the lines of a text from a position on, their number, and the position behind them.

        It stops at a line that is left to the exact way, and at what no line end stands behind.
        """
        return b"", 0, position

    def decode_lines(self, raw: bytes, position: int, count: int, most: int) -> tuple[bytes, int, int]:  # noqa: ARG002
        """Return at most `count` payloads from a position on as lines, until they have `most` bytes.

        Also the position behind them, and their number; it stops at a payload that is left to the exact way.
        """
        return b"", position, 0

    def encode_column(self, column: Slices, first: int, base: int, most: int) -> tuple[bytes, bytes, int]:  # noqa: ARG002
        """Return the payloads of a column's texts (`Slices`) from an index on, where each ends, and the index behind them.

        The ends are counted on from `base`, as 32-bit integers. A null has no bytes. It stops at a value that is left
        to the exact way, as one is that ends behind `most`.
        """
        return b"", b"", first

    def decode_column(self, column: Slices, first: int, base: int, most: int) -> tuple[bytes, bytes, int]:  # noqa: ARG002
        """Return the texts of a column's payloads, as `encode_column` does the other way."""
        return b"", b"", first
