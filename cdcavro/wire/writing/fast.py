"""The fast path from text to payload: msgspec parses the text, and the plan writes the value.

msgspec hides two things: a repeated member and `-0`. The payload is therefore used only if the text
holds no `-0` and exactly as many member separators as members were written. Whatever fails here is
left to the exact path, which reports the fault.
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
    """The fast path of one wire schema."""

    __slots__ = ("_writer",)

    def __init__(self, writer: MessageWriter) -> None:
        self._writer = writer

    def encode(self, raw: bytes) -> bytes | None:
        """Return UTF-8 JSON text as a payload; None where the fast path is not exact."""
        out = Buffer()
        return out.taken() if self._append(raw, out) else None

    def encode_lines(self, lines: list[bytes], first: int, out: Buffer) -> int:
        """Append the payloads of lines from index `first` on.

        Return the index of the first line for which the fast path is not exact, or the number of lines.
        """
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
        """Return the JSON value of a UTF-8 text, checked; None where the fast path is not exact."""
        out = Buffer()
        try:
            value = loads(raw)
            members = self._writer.write_into(out, value)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MessageError, orjson.JSONEncodeError):
            return None
        return value if has_members(raw, members) and not has_long_number(raw) else None
