"""The small readers that a plan for payloads is made of: those of arrays and maps.

An error within an item passes them on its way up, and is told the item's place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdcavro.errors import MessageError, PayloadError, shown
from cdcavro.wire.reading.values import Reader

if TYPE_CHECKING:
    from cdcavro.avro.buffer import Buffer
    from cdcavro.wire.payload import PayloadDecoder

_ARRAY, _ARRAY_END, _OBJECT, _OBJECT_END, _COMMA = b"[]{},"


class ArrayReader(Reader):
    """An array's blocks."""

    __slots__ = ("_items",)

    def __init__(self, items: Reader) -> None:
        self._items = items

    def read(self, payload: PayloadDecoder) -> Any:
        """Read all items."""
        items: list[Any] = []
        reader = self._items
        place = payload.place
        in_item = False
        try:
            while count := payload.read_block():
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

    def render(self, payload: PayloadDecoder, out: Buffer) -> bool:
        """Read all items and append them as JSON text."""
        reader = self._items
        place = payload.place
        found = 0
        in_item = False
        out.append(_ARRAY)
        try:
            while count := payload.read_block():
                in_item = True
                for _ in range(count):
                    if found:
                        out.append(_COMMA)
                    payload.place = ""
                    reader.render(payload, out)
                    found += 1
                in_item = False
                payload.place = place
        except MessageError as error:
            if in_item:
                payload.leave(error, place, str(found))
            raise
        out.append(_ARRAY_END)
        return True


class MapReader(Reader):
    """A map's blocks; a name given twice is refused, since one of two values would be lost."""

    __slots__ = ("_values",)

    def __init__(self, values: Reader) -> None:
        self._values = values

    def read(self, payload: PayloadDecoder) -> Any:
        """Read all entries."""
        entries: dict[str, Any] = {}
        reader = self._values
        place = payload.place
        name = ""
        in_value = False
        try:
            while count := payload.read_block():
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

    def render(self, payload: PayloadDecoder, out: Buffer) -> bool:
        """Read all entries and append them as JSON text."""
        out.append(_OBJECT)
        self.render_entries(payload, out, first=True)
        out.append(_OBJECT_END)
        return True

    def render_entries(self, payload: PayloadDecoder, out: Buffer, first: bool) -> set[str]:  # noqa: FBT001  compiled code takes no keywords
        """Read all entries and append them as members of an object; gives their names."""
        names: set[str] = set()
        found = 0
        reader = self._values
        place = payload.place
        name = ""
        in_value = False
        try:
            while count := payload.read_block():
                for _ in range(count):
                    if not first:
                        out.append(_COMMA)
                    first = False
                    name = payload.copy_name(out)
                    names.add(name)
                    if len(names) == found:
                        raise PayloadError("each name once", f"{shown(name)} twice")
                    found += 1
                    payload.place = ""
                    in_value = True
                    reader.render(payload, out)
                    in_value = False
                    payload.place = place
        except MessageError as error:
            if in_value:
                payload.leave(error, place, name)
            raise
        return names
