"""Layer 2, change: what a change is, whatever format it came in."""

from cdcavro.change.halves import join_halves
from cdcavro.change.model import Arrival, Change, Column, Source, replace
from cdcavro.change.order import in_order, split_key_change

__all__ = ["Arrival", "Change", "Column", "Source", "in_order", "join_halves", "replace", "split_key_change"]
