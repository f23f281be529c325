"""Catalogs of Iceberg tables that are servers or databases: what their properties, as pyiceberg names them, must say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.errors import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPE: Final = "type"
REST: Final = "rest"
SQL: Final = "sql"
HIVE: Final = "hive"
GLUE: Final = "glue"
NESSIE: Final = "nessie"
# What each kind of catalog needs beside its type.
_NEEDED: Final = {REST: ("uri",), SQL: ("uri", "warehouse"), HIVE: ("uri",), GLUE: (), NESSIE: ("uri", "warehouse")}
# Catalogs whose names have small letters, digits and `_` only, in one level: by their types, and as which service their
# requests are signed.
_PLAIN: Final = frozenset({HIVE, GLUE})
_SIGNED: Final = frozenset({"glue", "s3tables"})


def check_catalog(properties: Mapping[str, str]) -> None:
    """Raise `ValueError`, which shows no value but the type, for properties that are those of no catalog."""
    kind = properties.get(TYPE)
    if kind not in _NEEDED:
        said = "none" if kind is None else shown(kind)
        raise ValueError(f"the type of a catalog is {', '.join(_NEEDED)}, not {said}")
    missing = [name for name in _NEEDED[kind] if not properties.get(name)]
    if missing:
        raise ValueError(f"a catalog of type {kind} needs {' and '.join(missing)}")


def has_plain_names(properties: Mapping[str, str]) -> bool:
    """Return whether a catalog takes only names of small letters, digits and `_`, in one level of namespaces."""
    return properties.get(TYPE) in _PLAIN or properties.get("rest.signing-name") in _SIGNED
