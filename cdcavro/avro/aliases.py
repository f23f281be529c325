"""An index of the aliases in a reader's schema (Avro 1.8.2, "Aliases").

A table that was renamed often has many aliases, and types are used in many places; with the index,
no lookup searches a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.avro.types import Array, Map, Named, Primitive, Record, Union, branch_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cdcavro.avro.types import Field, Type

BRIEF: Final = 80
LISTED: Final = 10


class Aliases:
    """The aliases of the types and fields in a reader's schema.

    Built from the schema's root type. Attributes: `root`, that type; `named`, what `named_types` yields; `types`, the
    reader's named types by full name; `claims`, for each alias the full names of the types that have it.
    """

    def __init__(self, reader: Type) -> None:
        self.root = reader
        self.named = [*named_types(reader)]
        self.types: dict[str, Named] = {}
        self.claims: dict[str, dict[str, None]] = {}
        self._fields: dict[str, dict[str, Field]] = {}
        for _, named in self.named:
            self.types[named.name] = named
            for alias in named.aliases:
                self.claims.setdefault(alias, {})[named.name] = None
            if isinstance(named, Record):
                self._fields[named.name] = {alias: field for field in named.fields for alias in field.aliases}

    def has(self, name: str, reader: Named) -> bool:
        """Return whether a reader's type has this full name or has it as an alias."""
        return reader.name == name or reader.name in self.claims.get(name, ())

    def fields(self, reader: Record) -> Mapping[str, Field]:
        """Return the fields of a record by alias."""
        return self._fields[reader.name]


def named_types(root: Type) -> Iterator[tuple[str, Named]]:
    """Yield each named type once, outermost first, with the path of the first place that uses it.

    >>> from cdcavro.avro.schema import parse_schema
    >>> text = '{"type": "record", "name": "R", "fields": [{"name": "f", "type": {"type": "fixed", "name": "F", "size": 1}}]}'
    >>> [(path, named.name) for path, named in named_types(parse_schema(text).root)]
    [('$', 'R'), ('$.f', 'F')]
    """
    seen: set[str] = set()
    pending: list[tuple[str, Type]] = [("$", root)]
    while pending:
        path, declared = pending.pop()
        if isinstance(declared, Named):
            if declared.name in seen:
                continue
            seen.add(declared.name)
            yield path, declared
        pending.extend(reversed(list(_below(path, declared))))


def _below(path: str, declared: Type) -> Iterator[tuple[str, Type]]:
    if isinstance(declared, Array):
        yield path + "[]", declared.items
    elif isinstance(declared, Map):
        yield path + "{}", declared.values
    elif isinstance(declared, Union):
        yield from ((path, branch) for branch in declared.branches if type(branch) is not Primitive)
    elif isinstance(declared, Record):
        fields = (field for field in declared.fields if type(field.type) is not Primitive)
        yield from ((f"{path}.{brief(field.name)}", field.type) for field in fields)


def is_same_name(writer: Named, reader: Named) -> bool:
    """Return whether the reader's full name or one of its aliases is the writer's full name."""
    return writer.name == reader.name or writer.name in reader.aliases


def is_plain(declared: Type) -> bool:
    """Return whether a type is one of those that columns have by the thousand: a primitive, or a union of some."""
    return all(type(one) is Primitive for one in (declared.branches if isinstance(declared, Union) else (declared,)))


def last_name(named: Named) -> str:
    """Return the last part of a type's name, by which some readers go."""
    return named.name.rpartition(".")[2]


def kind_and_last(named: Named) -> str:
    """Return a key that types of one kind and one last name share, and that is no name."""
    return f"{type(named).__name__} {last_name(named)}"


def brief(name: str) -> str:
    """Return a name shortened to at most 80 characters, for use in a path or a sentence."""
    return name if len(name) <= BRIEF else name[:BRIEF] + "..."


def brief_list(names: Sequence[str]) -> str:
    """Return names as a list for use in a sentence: at most ten of them, and how many more there are.

    >>> brief_list(["a", "b"]), brief_list(list("abcdefghijkl"))
    ('a, b', 'a, b, c, d, e, f, g, h, i, j and 2 more')
    """
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(brief, names[:LISTED])) + more


def label(declared: Type) -> str:
    """Return what a type is called in a sentence: its name, or for a union a list of them."""
    if not isinstance(declared, Union):
        return brief(branch_name(declared))
    more = ", ..." if len(declared.branches) > LISTED else ""
    return "[" + ", ".join(map(label, declared.branches[:LISTED])) + more + "]"
