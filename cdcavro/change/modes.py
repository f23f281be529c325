"""Modes in which a Debezium connector sends the values of columns, named as its own settings name them.

With an embedded schema only `binaries` matters, since the schema says the rest.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cdcavro.errors import shown

PRECISE: Final = "precise"
STRING: Final = "string"
ADAPTIVE: Final = "adaptive"
ADAPTIVE_TIME_MICROSECONDS: Final = "adaptive_time_microseconds"
CONNECT: Final = "connect"
ISOSTRING: Final = "isostring"
MICROSECONDS: Final = "microseconds"
NANOSECONDS: Final = "nanoseconds"
STRUCTURED: Final = "structured"
BYTES: Final = "bytes"
BASE64: Final = "base64"
BASE64_URL_SAFE: Final = "base64-url-safe"
HEX: Final = "hex"
DECIMALS: Final = (PRECISE, STRING)
TIMES: Final = (
    *(ADAPTIVE_TIME_MICROSECONDS, ADAPTIVE, CONNECT, ISOSTRING, MICROSECONDS),
    *(NANOSECONDS, STRUCTURED),
)
BINARIES: Final = (BYTES, BASE64, BASE64_URL_SAFE, HEX)


class Modes(NamedTuple):
    """How values are sent; each mode has the default of MySQL's connector."""

    # The connector's `decimal.handling.mode`.
    decimals: str = PRECISE
    # Its `time.precision.mode`.
    times: str = ADAPTIVE_TIME_MICROSECONDS
    # Its `binary.handling.mode`.
    binaries: str = BYTES


USUAL_MODES: Final = Modes()
_KNOWN: Final = {"decimals": DECIMALS, "times": TIMES, "binaries": BINARIES}


def check_modes(decimals: str, times: str, binaries: str) -> Modes:
    """Return modes. Raises `ValueError` for one that is not known.

    >>> check_modes("string", "connect", "hex")
    Modes(decimals='string', times='connect', binaries='hex')
    """
    modes = Modes(decimals, times, binaries)
    for name, mode in zip(Modes._fields, modes, strict=True):
        if mode not in _KNOWN[name]:
            *others, last = _KNOWN[name]
            raise ValueError(f"{name} are {', '.join(others)} or {last}, not {shown(mode)}")
    return modes
