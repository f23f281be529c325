"""Options of the data source, as they are given with `option` and `load`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cdcavro.errors import SetupError, shown
from cdcavro.wire.formats import get_format
from cdcavro.wire.sniff import AUTO, MIXED

if TYPE_CHECKING:
    from collections.abc import Mapping

PART_BYTES: Final = 32 << 20
_PATH: Final = "path"
_PATHS: Final = "paths"
_FORMAT: Final = "format"
_MAX_BYTES: Final = "maxPartitionBytes"
_MAX_FILES: Final = "maxFilesPerTrigger"
_KNOWN: Final = {name.lower(): name for name in (_PATH, _PATHS, _FORMAT, _MAX_BYTES, _MAX_FILES)}


@dataclass(frozen=True, slots=True)
class Options:
    """What is to be read, and how.

    Attributes: `paths` (tuple of str), files, folders or patterns of their paths; `format` (str), a format's name,
    `auto` or `mixed`; `part_bytes` (int), about how many bytes of files a task reads; `most_files` (int or None), how
    many files a batch of a stream has at most.
    """

    paths: tuple[str, ...]
    format: str = AUTO
    part_bytes: int = PART_BYTES
    most_files: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        """Return the options that are spelled so, in any case. Raises `SetupError` and `UnknownFormatError`."""
        own = {name.lower(): value for name, value in given.items()}
        unknown = sorted(own.keys() - _KNOWN.keys())
        if unknown:
            known = ", ".join(name for name in _KNOWN.values() if name != _PATHS)
            raise SetupError(f"unknown option {shown(unknown[0])} of the data source cdcavro: known are {known}")
        paths = (*_listed(own.get(_PATHS, "[]")), *([own[_PATH]] if own.get(_PATH) else ()))
        if not paths:
            raise SetupError("the data source cdcavro needs a path: load('…') or option('path', '…')")
        format = own.get(_FORMAT, AUTO)
        if format not in (AUTO, MIXED):
            get_format(format)
        most = own.get(_MAX_FILES.lower())
        part_bytes = _count(_MAX_BYTES, own.get(_MAX_BYTES.lower(), str(PART_BYTES)))
        return cls(paths, format, part_bytes, None if most is None else _count(_MAX_FILES, most))


def _listed(text: str) -> list[str]:
    """Return the paths that were given to `load` as a list, of which Spark makes JSON."""
    try:
        paths = json.loads(text)
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise SetupError(f"the option {_PATHS} is a list of paths in JSON, not {shown(text)}")
    return paths


def _count(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text[:19]) > 0):
        raise SetupError(f"the option {name} is a whole number from 1, not {shown(text)}")
    return int(text[:19])
