"""The position of a change in its source's own order, as Debezium's connectors state it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact.members import at, string_at, whole_number
from cdcavro.exact.numbers import MAX_LONG

if TYPE_CHECKING:
    from collections.abc import Callable

Position = tuple[int, ...]

_SUFFIX: Final = re.compile(r".*?([0-9]{1,18})", re.ASCII | re.DOTALL)
_SEQUENCE: Final = re.compile(r'\[\s*(?:null|"([0-9]{1,18})")\s*,\s*"([0-9]{1,18})"\s*\]', re.ASCII)
_NO_LSN: Final = "00000000:00000000:0000"
_LSN: Final = re.compile(r"([0-9a-fA-F]{8}):([0-9a-fA-F]{8}):([0-9a-fA-F]{4})", re.ASCII)


def connector_position(source: Any) -> Position | None:
    """Return the numbers that order the changes of one connector, most significant first; None if it states none.

    >>> connector_position({"connector": "mysql", "file": "bin.000002", "pos": 704, "row": 1})
    (2, 704, 1)
    >>> connector_position({"connector": "postgresql", "lsn": 9, "sequence": '["7","9"]'})
    (7, 9)
    """
    find = _POSITIONS.get(string_at(source, "connector") or "")
    return None if find is None else find(source)


def _in_binlog(source: Any) -> Position | None:
    """Return the number of the binlog file, the offset in it, and the row of the event."""
    suffix = _SUFFIX.fullmatch(string_at(source, "file") or "")
    rest = _numbers(at(source, "pos"), at(source, "row"))
    return None if suffix is None or rest is None else (int(suffix[1]), *rest)


def _in_log(source: Any) -> Position | None:
    """Return the log sequence numbers of the last commit and of the change: transactions come in commit order."""
    match = _SEQUENCE.fullmatch(string_at(source, "sequence") or "")
    return _numbers(at(source, "lsn")) if match is None else (int(match[1] or "0"), int(match[2]))


def _in_redo(source: Any) -> Position | None:
    """Return the system change numbers of the commit and of the change, and the number of the statement."""
    commit = whole_number(string_at(source, "commit_scn"))
    change = whole_number(string_at(source, "scn"))
    return None if commit is None or change is None else (*commit, *change, *(_numbers(at(source, "ssn")) or (0,)))


def _in_change_table(source: Any) -> Position | None:
    """Return the parts of the log sequence numbers of the commit and of the change, and the number of the event.

    A schema change and a row of a snapshot have no number of their own, and come before the changes of the commit.
    """
    change = string_at(source, "change_lsn")
    matches = [_LSN.fullmatch(text or "") for text in (string_at(source, "commit_lsn"), change or _NO_LSN)]
    parts = [int(part, 16) for match in matches if match is not None for part in match.groups()]
    return None if None in matches else (*parts, *(_numbers(at(source, "event_serial_no")) or (0,)))


def _in_logical_log(source: Any) -> Position | None:
    """Return the log sequence numbers of the commit and of the change, which Informix writes as decimal text."""
    commit, change = (whole_number(string_at(source, name)) for name in ("commit_lsn", "change_lsn"))
    return None if commit is None or change is None else (*commit, *change)


def _in_commits(source: Any) -> Position | None:
    """Return TiDB's time stamp of the commit."""
    return _numbers(at(source, "commit_ts"))


def _numbers(*values: Any) -> Position | None:
    return values if all(type(value) is int and 0 <= value <= MAX_LONG for value in values) else None


_POSITIONS: Final[dict[str, Callable[[Any], Position | None]]] = {
    "mysql": _in_binlog,
    "mariadb": _in_binlog,
    "postgresql": _in_log,
    "oracle": _in_redo,
    "sqlserver": _in_change_table,
    "db2": _in_change_table,
    "informix": _in_logical_log,
    "TiCDC": _in_commits,
}
