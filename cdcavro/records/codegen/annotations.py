"""Avro types as annotations; long ones are declared under a name, so that every line fits."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union
from cdcavro.errors import SchemaError
from cdcavro.records.codegen.literals import WIDTH
from cdcavro.records.codegen.python_names import LONGEST_CLASS, class_names
from cdcavro.records.shapes import Key, branch_keys, shape
from cdcavro.wire.attributes import ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdcavro.records.codegen.kinds import Dialect

_WORD: Final = re.compile(r"\w+")
_LONG: Final = 70
_SEVERAL: Final = 4
_TYPES: Final[dict[type, str]] = {
    Decimal: "Decimal",
    dt.date: "dt.date",
    dt.time: "dt.time",
    dt.datetime: "dt.datetime",
}
_IMPORTED: Final = {"Decimal": ("decimal", "Decimal"), "dt": ("datetime", "dt")}
_COLUMN_VALUE: Final = "ColumnValue"


class Annotations:
    """Creates the annotations of a module.

    `taken` are the names already in use. Attributes: `names`, the class names of the current schema by key;
    `later` (set of str), those of the classes that are still to come, in which a record may be that contains
    itself: an annotation with one of them is a string, and has no declaration; `used` (set of str), the names in annotations that must be imported, or declared by the dialect; `pending`
    (list of str), declarations that belong before the class that uses them.
    """

    def __init__(self, dialect: Dialect, taken: set[str]) -> None:
        self._types = dialect.types
        self._taken = taken
        self._aliases: dict[str, str] = {}
        self.names: Mapping[Key, str] = {}
        self.later: set[str] = set()
        self.used: set[str] = set()
        self.pending: list[str] = []

    def annotation(self, declared: Type, place: str) -> str:
        """Return the annotation of a type; if it needs a name, that is derived from `place`."""
        match declared:
            case Array(items):
                return f"list[{self._bounded(items, place + 'Item')}]"
            case Map(values):
                return f"dict[str, {self._bounded(values, place + 'Value')}]"
            case Union():
                return self._union(declared, place)
            case Primitive() | Fixed() | Enum() | Record():
                return self._single(declared)
        raise SchemaError("$", f"{type(declared).__name__} is no type")

    def is_ahead(self, text: str) -> bool:
        """Return whether an annotation has the name of a class that is still to come."""
        return not self.later.isdisjoint(_WORD.findall(text))

    def alias(self, text: str, place: str) -> str:
        """Return a name for an annotation, unless it is ahead of a class; a new one is added to `pending`."""
        if self.is_ahead(text):
            return text
        if text not in self._aliases:
            (name,) = class_names([("", place)], self._taken)
            self._taken.add(name)
            self._aliases[text] = name
            self.pending.append(_declaration(name, text))
        return self._aliases[text]

    def wrapped(self, declared: Type) -> str:
        """Return the annotation of the value in a `Branch`."""
        return self._single(declared)

    def _bounded(self, declared: Type, place: str) -> str:
        text = self.annotation(declared, place)
        return text if len(text) <= _LONG else self.alias(text, place)

    def _union(self, declared: Union, place: str) -> str:
        texts: list[str] = []
        for key, branch in zip(branch_keys(declared), declared.branches, strict=True):
            texts.append(self.names[key] if key is not None else self.annotation(branch, place))
        if "None" in texts:
            texts.remove("None")
            texts.append("None")
        # No value is of a union without branches.
        text = " | ".join(texts) or "None"
        if len(texts) > _SEVERAL or len(text) > 2 * _LONG:
            is_column = any(
                isinstance(branch, Record) and ATTRIBUTE in branch.attributes for branch in declared.branches
            )
            return self.alias(text, _COLUMN_VALUE if is_column else place)
        return text

    def _single(self, declared: Type) -> str:
        own = shape(declared)
        if isinstance(own, str):
            return self.names[own]
        if own is type(None):
            return "None"
        if own in _TYPES:
            return self._use(self._time(declared) or _TYPES[own])
        name = declared.name if isinstance(declared, Primitive) else ""
        return self._use(self._types.get(name, own.__name__))

    def _time(self, declared: Any) -> str:
        """Return the dialect's name for an instant or a local time, if it has one."""
        logical = str(declared.attributes.get("logicalType", ""))
        word = {"timestamp": "aware", "local": "naive"}.get(logical.partition("-")[0], "")
        return self._types.get(word, "")

    def _use(self, text: str) -> str:
        self.used.add(text.partition(".")[0])
        return text


def _declaration(name: str, text: str) -> str:
    """Return the declaration of a name as a formatter lays it out."""
    if len(name) + 3 + len(text) <= WIDTH or " | " not in text:
        return f"{name} = {text}"
    if len(text) + 4 <= WIDTH:
        return f"{name} = (\n    {text}\n)"
    return f"{name} = (\n    " + "\n    | ".join(text.split(" | ")) + "\n)"


def place_of(owner: str, field: str) -> str:
    """Return the place of a field, from which the name of its type is derived.

    >>> place_of("Canal", "data_rows")
    'CanalDataRows'
    """
    return f"{owner}{''.join(part[:1].upper() + part[1:] for part in field.split('_'))}"[: 2 * LONGEST_CLASS]
