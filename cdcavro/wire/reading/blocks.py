"""Reading consecutive payloads as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.errors import MessageError
from cdcavro.exact.jsontext import render
from cdcavro.wire.payload import PayloadDecoder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.engine.machine import Engine
    from cdcavro.wire.reading.messages import MessageReader

_PIECE: Final = 256 << 10


def decoded_lines(engine: Engine | None, reader: MessageReader, raw: bytes, count: int) -> Iterator[tuple[bytes, int]]:
    """Yield `count` consecutive payloads as lines of JSON text, several at a time, and their number.

    The engine makes them, if there is one, and the reader those that it leaves. Raises `PayloadError`.
    """
    position = 0
    while count:
        lines: list[bytes] = []
        done = size = 0
        try:
            while done < count and size < _PIECE:
                if engine is not None:
                    some, position, number = engine.decode_lines(raw, position, count - done, _PIECE - size)
                    lines.append(some)
                    done += number
                    size += len(some)
                if done < count and size < _PIECE:
                    line, position = _decoded_line(reader, raw, position)
                    lines.append(line)
                    done += 1
                    size += len(line)
        except MessageError:
            yield b"".join(lines), done
            raise
        yield b"".join(lines), done
        count -= done
    PayloadDecoder(raw, position).finish()


def _decoded_line(reader: MessageReader, raw: bytes, position: int) -> tuple[bytes, int]:
    payload = PayloadDecoder(raw, position)
    return render(reader.read(payload)) + b"\n", payload.position
