"""Value codecs: how the values of a column are read and sent."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class ValueCodec(NamedTuple):
    """How the values of a column are read and sent; both functions return None for a value that does not fit.

    `rule` (tuple or None) tells the engine what `read` does: a name and its operands; None if it cannot be told.
    """

    read: Callable[[Any], Any]
    send: Callable[[Any], Any]
    rule: tuple[Any, ...] | None = None


def either(*codecs: ValueCodec) -> ValueCodec:
    """Return a codec that reads what any of these codecs reads, and sends as the first of them that can."""

    def read(sent: Any) -> Any:
        return next((value for value in (codec.read(sent) for codec in codecs) if value is not None), None)

    def send(value: Any) -> Any:
        return next((sent for sent in (codec.send(value) for codec in codecs) if sent is not None), None)

    return ValueCodec(read, send, codecs[0].rule)


def each(items: ValueCodec) -> ValueCodec:
    """Return the codec of arrays whose items have a codec; null items stay, and all others have to fit."""
    return ValueCodec(partial(_each, convert=items.read), partial(_each, convert=items.send))


def _each(values: Any, convert: Callable[[Any], Any]) -> list[Any] | None:
    if type(values) is not list:
        return None
    made = [None if value is None else convert(value) for value in values]
    fit = all(value is None or one is not None for value, one in zip(values, made, strict=True))
    return made if fit else None
