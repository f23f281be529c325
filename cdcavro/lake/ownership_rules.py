"""Ownership rules of lake tables: each belongs to the pipeline that created it, which its properties name.

Two pipelines that write one table would append every change twice. So a table of another pipeline is refused, or
adopted: then what it holds already is not appended again, no column is dropped, and no column that it has is filled
anew.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from cdcavro.errors import FileError
from cdcavro.lake.lakes import OWNER
from cdcavro.lake.sql_statements import ADOPTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# The order up to which a changelog is the former owner's.
UNTIL: Final = "cdcavro.adopted.until"
REFUSAL: Final = (
    "stop that pipeline, and adopt the table (--adopt, or adopt in [lake]), to which nothing is appended twice then, or take"
    " another lake"
)


def foreign_table_error(identifier: str, owner: str | None) -> FileError:
    """Return the error for a lake table of another pipeline."""
    got = f"one of another pipeline ({owner})" if owner else "one that another pipeline, or nobody known, has written"
    return FileError(identifier, "a lake table of this pipeline", f"{got}: {REFUSAL}")


def adopts(identifier: str, owner: str | None, *, is_known: bool, is_adopting: bool) -> bool:
    """Return whether a lake table that says another owner, or none, is adopted; if not, it is only marked.

    A table without an owner is somebody else's, too, unless the pipeline wrote it when tables had none (`is_known`).
    With `is_adopting`, tables of others are adopted. Raises `FileError` for a table that is refused.
    """
    if owner is None and is_known:
        return False
    if not is_adopting:
        raise foreign_table_error(identifier, owner)
    return True


def adopted_properties(owner: str, columns: Iterable[str], until: bytes | None = None) -> dict[str, str]:
    """Return what an adopted table says: its owner, and its columns; of a changelog `until`, its last order, too."""
    said = {OWNER: owner, ADOPTED: json.dumps(list(columns))}
    return said if until is None else said | {UNTIL: until.hex()}


def adopted_columns(properties: Mapping[str, str]) -> frozenset[str] | None:
    """Return the columns that a lake table had when it was adopted, None if it was not."""
    return frozenset(json.loads(properties[ADOPTED])) if ADOPTED in properties else None


def adopted_until(properties: Mapping[str, str]) -> bytes:
    """Return the last order in a changelog when it was adopted, empty if it was not."""
    return bytes.fromhex(properties.get(UNTIL, ""))
