"""Offsets of a stream of files: which files it has read, as JSON that Spark keeps in the checkpoint.

An offset names the files of its batch, in their order, and of those before it has a mark each: twelve bytes, from which
neither name nor size can be told, but with which both can be compared. So an offset grows by sixteen characters for each
file that still lies where the stream looks, whatever the order in which files come.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import FileError, JobError
from cdcavro.spark.source.listing import Found

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAME: Final = 9
_SIZE: Final = 3
_MARK: Final = _NAME + _SIZE
_VERSION: Final = 1


@dataclass(frozen=True)
class Offset:
    """What a stream has read.

    Attributes: `before` (dict of bytes), for each file of earlier batches that was still there, by the mark of its name
    the mark of its size; `files` (tuple of `Found`), those of the last batch, in their order.
    """

    before: Mapping[bytes, bytes] = field(default_factory=dict)
    files: tuple[Found, ...] = ()

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Offset:
        """Return the offset that Spark kept. Raises `JobError` for one that is none."""
        try:
            marks = base64.b64decode(json["before"], validate=True)
            files = tuple(Found(file["name"], file["size"]) for file in json["files"])
            known = json["version"] == _VERSION
        except (KeyError, TypeError, ValueError):
            known = False
        if not known:
            raise JobError("the checkpoint is of another source, or of another version of the data source cdcavro")
        before = {marks[i : i + _NAME]: marks[i + _NAME : i + _MARK] for i in range(0, len(marks), _MARK)}
        return cls(before, files)

    def json(self) -> dict[str, Any]:
        """Return the offset as Spark keeps it; equal offsets are equal texts."""
        marks = b"".join(name + size for name, size in sorted(self.before.items()))
        files = [{"name": file.name, "size": file.size} for file in self.files]
        return {"version": _VERSION, "before": base64.b64encode(marks).decode(), "files": files}

    def marks(self) -> dict[bytes, bytes]:
        """Return the marks of the sizes of all files that were read, by those of their names."""
        return {**self.before, **dict(map(_marks, self.files))}

    def following(self, base: Offset, found: Iterable[Found], most: int | None) -> Offset:
        """Return the offset behind this one: with at most so many files that are not read yet, the oldest first.

        It is this one if there are none. `base` is the last one that is known to be behind Spark: what came between is
        named again, as nobody may have asked for it. What was read and is gone is forgotten, unless nothing is there at
        all. Raises `FileError` for a file that has changed since it was read.
        """
        known, new, there = self.marks(), [], {}
        for file in found:
            name, size = _marks(file)
            if name not in known:
                new.append(file)
            elif known[name] == size:
                there[name] = size
            else:
                expected = "the file as it was when it was read: a file is complete when it appears"
                raise FileError(file.name, expected, f"one of {file.size} bytes, another size")
        if not new:
            return self
        new.sort(key=lambda file: (file.modified, file.name))
        return Offset(there, (*self.since(base), *new[:most]))

    def since(self, start: Offset) -> list[Found]:
        """Return the files from one offset to this one, in their order."""
        known = start.marks()
        return [file for file in self.files if _marks(file)[0] not in known]


def _marks(file: Found) -> tuple[bytes, bytes]:
    name = hashlib.blake2b(file.name.encode(), digest_size=_NAME).digest()
    return name, hashlib.blake2b(file.size.to_bytes(8, "big"), digest_size=_SIZE).digest()
