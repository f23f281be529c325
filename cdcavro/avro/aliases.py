"""Aliases of a reader's schema, found once (Avro 1.8.2, "Aliases").

A table that was renamed often has many, and types are used in many places: no place looks through
a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.avro.types import Array, Map, Named, Record, Union

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cdcavro.avro.types import Field, Type

BRIEF: Final = 80
LISTED: Final = 10


class Aliases:
    """Which types and fields of a reader's schema go by another name.

    Made from the schema's type. Attributes: `types`, the reader's named types by full name; `claims`,
    the full names of the types that have a name as their alias, by that name.
    """

    def __init__(self, reader: Type) -> None:
        self.types: dict[str, Named] = {}
        self.claims: dict[str, dict[str, None]] = {}
        self._fields: dict[str, dict[str, Field]] = {}
        for _, named in named_types(reader):
            self.types[named.name] = named
            for alias in named.aliases:
                self.claims.setdefault(alias, {})[named.name] = None
            if isinstance(named, Record):
                self._fields[named.name] = {alias: one for one in named.fields for alias in one.aliases}

    def has(self, name: str, reader: Named) -> bool:
        """Return whether a type has this name, or has it as an alias."""
        return reader.name == name or reader.name in self.claims.get(name, ())

    def fields(self, reader: Record) -> Mapping[str, Field]:
        """Return the fields of a record by alias."""
        return self._fields[reader.name]


def named_types(root: Type) -> Iterator[tuple[str, Named]]:
    """Find each named type once, outermost first, with the path of the first place that uses it.

    >>> from cdcavro.avro.schema import parse_schema
    >>> text = '{"type": "record", "name": "R", "fields": [{"name": "f", "type": {"type": "fixed", "name": "F", "size": 1}}]}'
    >>> [(path, one.name) for path, one in named_types(parse_schema(text).root)]
    [('$', 'R'), ('$.f', 'F')]
    """
    seen: set[str] = set()
    left: list[tuple[str, Type]] = [("$", root)]
    while left:
        path, one = left.pop()
        if isinstance(one, Named):
            if one.name in seen:
                continue
            seen.add(one.name)
            yield path, one
        left.extend(reversed(list(_below(path, one))))


def _below(path: str, declared: Type) -> Iterator[tuple[str, Type]]:
    if isinstance(declared, Array):
        yield path + "[]", declared.items
    elif isinstance(declared, Map):
        yield path + "{}", declared.values
    elif isinstance(declared, Union):
        yield from ((path, one) for one in declared.branches)
    elif isinstance(declared, Record):
        yield from ((f"{path}.{brief(one.name)}", one.type) for one in declared.fields)


def brief(name: str) -> str:
    """Return a name as it may stand in a path or sentence: at most 80 characters of it."""
    return name if len(name) <= BRIEF else name[:BRIEF] + "..."


def brief_list(names: Sequence[str]) -> str:
    """Return names as they may stand in a sentence: at most ten of them, and how many more there are.

    >>> brief_list(["a", "b"]), brief_list(list("abcdefghijkl"))
    ('a, b', 'a, b, c, d, e, f, g, h, i, j and 2 more')
    """
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(brief, names[:LISTED])) + more
