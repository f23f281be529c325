"""The log of a Delta table in a local folder: commits that `deltalake` has no call for.

A commit is a file with the next number. It is written beside the log's files, and gets its name if no other writer
took it meanwhile: whoever reads the log sees the whole commit or none of it.

Source: Delta Lake's protocol, "Delta Log Entries", "Add File and Remove File".
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from cdcavro.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class TakenError(Exception):
    """Another writer has committed under the number of a commit."""


def log_folder(folder: str) -> Path:
    """Return the folder of a table's log."""
    return Path(folder, "_delta_log")


def has_log(folder: str) -> bool:
    """Return whether a folder is that of a Delta table."""
    try:
        return any(is_commit(one.name) for one in os.scandir(log_folder(folder)))
    except (FileNotFoundError, NotADirectoryError):
        return False


def is_commit(name: str) -> bool:
    """Return whether a file of a log with such a name is seen by readers."""
    return not name.startswith((".", "_")) or name == "_last_checkpoint"


def commit(folder: str, version: int, operation: str, actions: Sequence[Mapping[str, Any]]) -> None:
    """Write the commit that makes a version of a table.

    Raises `TakenError` if there is one, and `JobError` if the file system has no hard links.
    """
    log = log_folder(folder)
    log.mkdir(parents=True, exist_ok=True)
    said = {
        "timestamp": int(time.time() * 1000),
        "operation": operation,
        "operationParameters": {},
        **({"readVersion": version - 1} if version else {}),
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": {},
        "engineInfo": "cdcavro",
        "txnId": str(uuid4()),
    }
    lines = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in ({"commitInfo": said}, *actions)]
    scratch = log / f".{uuid4().hex}.tmp"
    try:
        _write(scratch, "\n".join(lines) + "\n")
        _name(scratch, log / f"{version:020}.json")
        _sync_folder(log)
    finally:
        scratch.unlink(missing_ok=True)


def _write(file: Path, text: str) -> None:
    with file.open("x", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def _name(scratch: Path, file: Path) -> None:
    """Give a file a name that nothing has yet. Raises `TakenError` and `JobError`."""
    try:
        os.link(scratch, file)
    except FileExistsError:
        raise TakenError from None
    except OSError as error:
        raise JobError(
            f"{file}: a name cannot be given to a commit at once, which takes hard links: {error}"
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder outlast a loss of power, where the system can do that."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
