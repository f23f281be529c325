"""Text to payload by the fast way: msgspec parses it, the plan writes it.

msgspec hides two things, a repeated member and `-0`. So a payload is taken from here only if the
text holds no `-0` and no more member separators than members were written. Whatever goes wrong here
is left to the exact way, which names the fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from cdcavro.avro.buffer import Buffer
from cdcavro.errors import MessageError
from cdcavro.exact.fastjson import loads
from cdcavro.exact.scan import has_long_number, has_members

if TYPE_CHECKING:
    from cdcavro.wire.writing.messages import MessageWriter


class Encoder:
    """The fast way of one wire schema."""

    __slots__ = ("_writer",)

    def __init__(self, writer: MessageWriter) -> None:
        self._writer = writer

    def encode(self, raw: bytes) -> bytes | None:
        """Turn UTF-8 JSON text into a payload; None where the fast way is not exact."""
        out = Buffer()
        return out.taken() if self._append(raw, out) else None

    def encode_lines(self, lines: list[bytes], first: int, out: Buffer) -> int:
        """Append the payloads of lines from `first` on; gives the first line for which the fast way is not exact, or their number."""
        for i in range(first, len(lines)):
            size = len(out)
            if not self._append(lines[i], out):
                out.cut(size)
                return i
        return len(lines)

    def _append(self, raw: bytes, out: Buffer) -> bool:
        try:
            members = self._writer.write_into(out, loads(raw))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MessageError, orjson.JSONEncodeError):
            return False
        return has_members(raw, members)

    def parse(self, raw: bytes) -> Any:
        """Turn UTF-8 JSON text into the value that it is, checked; None where the fast way is not exact."""
        out = Buffer()
        try:
            value = loads(raw)
            members = self._writer.write_into(out, value)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MessageError, orjson.JSONEncodeError):
            return None
        return value if has_members(raw, members) and not has_long_number(raw) else None
