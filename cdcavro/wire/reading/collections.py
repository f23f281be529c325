"""The small readers that make up a plan for reading payloads: those of arrays and maps.

They add the place of an item to an error on its way up from the item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdcavro.errors import MessageError, PayloadError, shown
from cdcavro.wire.reading.values import Reader

if TYPE_CHECKING:
    from cdcavro.wire.payload import PayloadDecoder


class ArrayReader(Reader):
    """A reader of an array, block by block."""

    __slots__ = ("_items",)

    def __init__(self, items: Reader) -> None:
        self._items = items

    def read(self, payload: PayloadDecoder) -> Any:
        """Read all items into a list."""
        items: list[Any] = []
        reader = self._items
        place = payload.place
        in_item = False
        try:
            for count in payload.blocks():
                in_item = True
                for _ in range(count):
                    payload.place = ""
                    items.append(reader.read(payload))
                in_item = False
                payload.place = place
        except MessageError as error:
            if in_item:
                payload.leave(error, place, str(len(items)))
            raise
        return items


class MapReader(Reader):
    """A reader of a map, block by block, which refuses a repeated name: one of two values would be lost."""

    __slots__ = ("_values",)

    def __init__(self, values: Reader) -> None:
        self._values = values

    def read(self, payload: PayloadDecoder) -> Any:
        """Read all entries into a dict."""
        entries: dict[str, Any] = {}
        reader = self._values
        place = payload.place
        name = ""
        in_value = False
        try:
            for count in payload.blocks():
                for _ in range(count):
                    name = payload.read_name()
                    if name in entries:
                        raise PayloadError("each name once", f"{shown(name)} twice")
                    payload.place = ""
                    in_value = True
                    entries[name] = reader.read(payload)
                    in_value = False
                    payload.place = place
        except MessageError as error:
            if in_value:
                payload.leave(error, place, name)
            raise
        return entries
