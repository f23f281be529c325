"""Decimals, and integers beyond 64 bits, as Kafka Connect and Debezium send them.

Source: Kafka Connect, class `Decimal`; Debezium reference, "Decimal types", `bigint.unsigned.handling.mode`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.values import modes
from cdcavro.change.values.value_codec import ValueCodec
from cdcavro.exact.base64_text import bytes_of
from cdcavro.exact.numbers import MIN_LONG, ExactNumber, minimal_bytes, number, plain_text
from cdcavro.exact.scan import is_number

if TYPE_CHECKING:
    from cdcavro.change.values.modes import Modes
    from cdcavro.exact.sqltype import SqlType

_PLAIN: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.([0-9]+))?", re.ASCII)
# Python refuses to parse and print longer integers, and is slow well before that.
_MAX_DIGITS: Final = 4_300
_MAX_UNSCALED: Final = 1024
_MAX_SCALE: Final = 4096
_MOST: Final = 10**_MAX_DIGITS
_NUMBERS: Final = (int, float, ExactNumber)


def decimal(scale: int) -> ValueCodec | None:
    """Return the codec of decimals that are base64 of the unscaled number; None for an absurd scale.

    A negative scale means zeros: the unscaled 5 of scale -2 is 500.
    """
    return (
        ValueCodec(partial(_read_decimal, scale=scale), partial(_send_decimal, scale=scale), ("decimal", scale))
        if abs(scale) <= _MAX_SCALE
        else None
    )


def _read_decimal(sent: Any, scale: int) -> int | float | ExactNumber | None:
    raw = bytes_of(sent)
    if not raw or len(raw) > _MAX_UNSCALED:
        return None
    unscaled = int.from_bytes(raw, "big", signed=True) * 10 ** max(-scale, 0)
    if scale < 0 and abs(unscaled) >= _MOST:
        return None
    places = max(scale, 0)
    digits = str(abs(unscaled)).rjust(places + 1, "0")
    whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
    return number(f"{'-' if unscaled < 0 else ''}{whole}{'.' if part else ''}{part}")


def _send_decimal(value: Any, scale: int) -> str | None:
    text = plain_text(value) if type(value) in _NUMBERS else ""
    match = _PLAIN.fullmatch(text)
    if match is None or len(match[1] or "") != max(scale, 0) or len(text) > _MAX_DIGITS:
        return None
    unscaled, rest = divmod(int(text.replace(".", "")), 10 ** max(-scale, 0))
    if rest or (text.startswith("-") and not unscaled):
        return None
    raw = minimal_bytes(unscaled)
    return b64encode(raw).decode() if len(raw) <= _MAX_UNSCALED else None


def _read_digits(sent: Any) -> int | float | ExactNumber | None:
    return number(sent) if type(sent) is str and is_number(sent) else None


def _send_digits(value: Any) -> str | None:
    return plain_text(value) if type(value) in _NUMBERS else None


def declared_decimal(declared: SqlType, mode: Modes) -> ValueCodec | None:
    """Return the codec of MySQL's DECIMAL."""
    if mode.decimals == modes.STRING:
        return ValueCodec(_read_digits, _send_digits, ("digits",))
    return decimal(declared.arguments[1] if len(declared.arguments) > 1 else 0)


def bigint(declared: SqlType, _: Modes) -> ValueCodec | None:
    """Return the codec of BIGINT; None if it is signed, since its values are sent as they are then."""
    send = partial(_send_decimal, scale=0)
    return ValueCodec(_read_unsigned, send, ("unsigned",)) if declared.unsigned else None


def _read_unsigned(sent: Any) -> int | float | ExactNumber | None:
    """Return an unsigned integer of 64 bits, sent as a decimal or as the signed integer of the same bits."""
    if type(sent) is int and MIN_LONG <= sent < 0:
        return ExactNumber(str(sent + (1 << 64)))
    return _read_decimal(sent, 0)


def read_scaled(sent: Any) -> int | float | ExactNumber | None:
    """Return the number of an object with the unscaled number and its scale."""
    if type(sent) is not dict or set(sent) != {"scale", "value"}:
        return None
    scale = sent["scale"]
    return _read_decimal(sent["value"], scale) if type(scale) is int and abs(scale) <= _MAX_SCALE else None


def send_scaled(value: Any) -> dict[str, Any] | None:
    """Return the object that `read_scaled` reads."""
    match = _PLAIN.fullmatch(plain_text(value)) if type(value) in _NUMBERS else None
    scale = 0 if match is None else len(match[1] or "")
    sent = None if match is None else _send_decimal(value, scale)
    return None if sent is None else {"scale": scale, "value": sent}
