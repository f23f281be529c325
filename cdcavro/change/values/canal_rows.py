"""Rows between Canal, which sends texts only, and changes: numbers by the engine, the other values one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdcavro.change.values.canal import NUMBERS, plain_value, value_reader, value_writer
from cdcavro.engine.machine import read_numbers, write_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import tzinfo

    from cdcavro.exact.sqltype import SqlType


class RowReader:
    """Converts rows as Canal sent them, by the declared types of columns, each with its name."""

    __slots__ = ("_numbers", "_readers")

    def __init__(self, columns: Iterable[tuple[str, SqlType]], zone: tzinfo | None) -> None:
        types = dict(columns)
        self._numbers = {name: NUMBERS[declared.name] for name, declared in types.items() if declared.name in NUMBERS}
        readers = {name: value_reader(types[name], zone) for name in types.keys() - self._numbers.keys()}
        self._readers = {name: read for name, read in readers.items() if read is not None}

    def convert(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row as changes have it."""
        converted = dict(row)
        read_numbers(converted, self._numbers)
        return _each(converted, self._readers)


class RowWriter:
    """Converts rows of changes, by the declared types of columns, each with its name."""

    __slots__ = ("_writers",)

    def __init__(self, columns: Iterable[tuple[str, SqlType]], zone: tzinfo | None) -> None:
        writers = {name: value_writer(declared, zone) for name, declared in columns if declared.name not in NUMBERS}
        self._writers = {name: write for name, write in writers.items() if write is not plain_value}

    def convert(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row as Canal sends it."""
        converted = _each(dict(row), self._writers)
        if not write_numbers(converted):
            converted = {name: plain_value(value) for name, value in converted.items()}
        return converted


def _each(row: dict[str, Any], converters: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Return a row with the values of some columns converted, in place; null stays null."""
    for name in converters if len(converters) <= len(row) else row.keys() & converters.keys():
        value = row.get(name)
        if value is not None:
            row[name] = converters[name](value)
    return row
