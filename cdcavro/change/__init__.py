"""Layer 2, change: what a change is, whatever format it came in."""

from cdcavro.change.model import Arrival, Change, Column, Source, replace
from cdcavro.change.order import Clock, LaneTime, in_order, join_halves, split_key_change
from cdcavro.change.order_value import order_kind, order_value

__all__ = [
    "Arrival",
    "Change",
    "Clock",
    "Column",
    "LaneTime",
    "Source",
    "in_order",
    "join_halves",
    "order_kind",
    "order_value",
    "replace",
    "split_key_change",
]
