"""Converting geometries between Debezium's objects of WKB and SRID (reference system) and EWKB, which holds both.

Source: PostGIS manual, "Geometry Input/Output"; Debezium reference, "Spatial types".
"""

from __future__ import annotations

import math
import struct
from base64 import b64encode
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact.base64_text import bytes_of
from cdcavro.exact.numbers import fraction

if TYPE_CHECKING:
    from cdcavro.exact.numbers import ExactNumber

_SRID_FLAG: Final = 0x2000_0000
_HEADER: Final = 5
_POINT_SIZE: Final = 21
_SRIDS: Final = 1 << 32
_PLAIN_FROM: Final = 1e-3
_PLAIN_BELOW: Final = 1e7


def read_connect_geometry(sent: Any) -> str | None:
    """Return a geometry as base64 of little-endian EWKB, which holds the reference system only if one is stated.

    None for anything else, such as big-endian WKB or members other than `wkb`, `srid`, `x` and `y`.

    >>> read_connect_geometry({"wkb": "AQEAAAAAAAAAAAD4PwAAAAAAAALA", "srid": 4326})
    'AQEAACDmEAAAAAAAAAAA+D8AAAAAAAACwA=='
    """
    if type(sent) is not dict or not {"wkb"} <= set(sent) <= {"wkb", "srid", "x", "y"}:
        return None
    wkb, srid = bytes_of(sent["wkb"]), sent.get("srid")
    kind = _kind(wkb)
    if wkb is None or kind is None or (srid is not None and (type(srid) is not int or not 0 <= srid < _SRIDS)):
        return None
    if kind & _SRID_FLAG or srid is None:
        return str(sent["wkb"])
    return b64encode(b"\1" + struct.pack("<II", kind | _SRID_FLAG, srid) + wkb[_HEADER:]).decode()


def send_connect_geometry(value: Any, *, is_point: bool) -> dict[str, Any] | None:
    """Return the object that `read_connect_geometry` reads; a MySQL POINT (`is_point`) has its `x` and `y` as well."""
    ewkb = bytes_of(value)
    kind = _kind(ewkb)
    if ewkb is None or kind is None:
        return None
    srid = None
    if kind & _SRID_FLAG and len(ewkb) >= _HEADER + 4:
        srid = int.from_bytes(ewkb[_HEADER : _HEADER + 4], "little")
        ewkb = b"\1" + struct.pack("<I", kind & ~_SRID_FLAG) + ewkb[_HEADER + 4 :]
    sent = {"wkb": b64encode(ewkb).decode(), "srid": srid}
    if not is_point:
        return sent
    if len(ewkb) != _POINT_SIZE:
        return None
    x, y = struct.unpack("<dd", ewkb[_HEADER:])
    return {"x": _java_double(x), "y": _java_double(y)} | sent if math.isfinite(x) and math.isfinite(y) else None


def _kind(wkb: bytes | None) -> int | None:
    """Return the number of a WKB's geometry type; None for anything but little-endian WKB."""
    if wkb is None or len(wkb) < _HEADER or wkb[0] != 1:
        return None
    return int.from_bytes(wkb[1:_HEADER], "little")


def _java_double(value: float) -> float | ExactNumber:
    """Return a double as Java prints it: with an exponent from ten million up and below a thousandth."""
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return fraction(repr(value))
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    rest = "".join(map(str, digits[1:])) or "0"
    return fraction(f"{'-' * sign}{digits[0]}.{rest}E{int(exponent) + len(digits) - 1}")
