"""Where the named types of a schema's JSON are defined: at their first use, wherever fields went.

A schema defines a record, enum or fixed once, where it is first used, and names it from there on.
A field that is dropped or moved takes the definition along; here it is put where it belongs again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.types import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMED: Final = frozenset({"record", "enum", "fixed"})
Definitions = dict[str, dict[str, Any]]


def definitions(declared: Any) -> Definitions:
    """Give the named types that a schema's JSON defines below its root, by full name.

    >>> definitions({"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "fixed", "name": "F", "size": 2}}]})
    {'F': {'type': 'fixed', 'name': 'F', 'size': 2}}
    """
    found: Definitions = {}
    _collect(declared, "", found)
    if isinstance(declared, dict) and declared.get("type") in _NAMED:
        found.pop(full_name(declared["name"], declared.get("namespace", "")), None)
    return found


def settled(declared: Any, known: Mapping[str, dict[str, Any]]) -> Any:
    """Give a schema's JSON with each of the known types defined where it is used first, and named after that."""
    return _placed(declared, "", known, set())


def pin(record: dict[str, Any]) -> None:
    """Write out the full names of all types that a record's fields define and name, so that its own may change."""
    space = full_name(record["name"], record.get("namespace", "")).rpartition(".")[0]
    for one in record.get("fields", []):
        one["type"] = _pinned(one["type"], space)


def _pinned(declared: Any, space: str) -> Any:
    if isinstance(declared, list):
        return [_pinned(one, space) for one in declared]
    if isinstance(declared, str):
        return declared if declared in PRIMITIVES else full_name(declared, space)
    made = dict(declared)
    if declared.get("type") in _NAMED:
        space = full_name(declared["name"], declared.get("namespace", space)).rpartition(".")[0]
        made["namespace"] = space
    for key in ("items", "values"):
        if key in declared:
            made[key] = _pinned(declared[key], space)
    if declared.get("type") == "record":
        made["fields"] = [one | {"type": _pinned(one["type"], space)} for one in declared.get("fields", [])]
    return made


def _collect(declared: Any, space: str, found: Definitions) -> None:
    if isinstance(declared, list):
        for one in declared:
            _collect(one, space, found)
    elif isinstance(declared, dict):
        if declared.get("type") in _NAMED:
            full = full_name(declared["name"], declared.get("namespace", space))
            found.setdefault(full, declared)
            space = full.rpartition(".")[0]
        for one in _inner(declared):
            _collect(one, space, found)


def _inner(declared: dict[str, Any]) -> list[Any]:
    if declared.get("type") == "record":
        return [one["type"] for one in declared.get("fields", [])]
    return [declared[key] for key in ("items", "values") if key in declared]


def _placed(declared: Any, space: str, known: Mapping[str, dict[str, Any]], done: set[str]) -> Any:
    if isinstance(declared, list):
        return [_placed(one, space, known, done) for one in declared]
    if isinstance(declared, str):
        full = full_name(declared, space)
        if declared in PRIMITIVES or full not in known or full in done:
            return declared
        above, _, _ = full.rpartition(".")
        return _placed(known[full] | ({"namespace": above} if above else {}), space, known, done)
    if not isinstance(declared, dict):
        return declared
    if declared.get("type") in _NAMED:
        full = full_name(declared["name"], declared.get("namespace", space))
        if full in done:
            return full
        done.add(full)
        space = full.rpartition(".")[0]
    return _with_inner(declared, space, known, done)


def _with_inner(declared: dict[str, Any], space: str, known: Mapping[str, dict[str, Any]], done: set[str]) -> Any:
    made = dict(declared)
    if declared.get("type") == "record":
        made["fields"] = [
            one | {"type": _placed(one["type"], space, known, done)} for one in declared.get("fields", [])
        ]
    for key in ("items", "values"):
        if key in declared:
            made[key] = _placed(declared[key], space, known, done)
    return made


def full_name(name: str, space: str) -> str:
    """Give the full name of a type that is named where a namespace holds (Avro 1.8.2, "Names")."""
    return name if "." in name or not space else f"{space}.{name}"
