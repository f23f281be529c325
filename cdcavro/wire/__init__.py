"""Layer 1, wire: a message becomes a payload and comes back, by its wire schema."""

from cdcavro.wire.format import Format
from cdcavro.wire.formats import get_format

__all__ = ["Format", "get_format"]
