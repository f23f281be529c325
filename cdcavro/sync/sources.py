r"""Sources of messages: Kafka topics, and files and folders of JSON lines, by patterns of their paths, too.

A pattern of paths is read as Hadoop reads it: `*` and `?` within a name, `[a-z]`, `[^a-z]`, `{a,b}`, `\` before a mark.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cdcavro.errors import FileError, plain, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_IN_BRACKETS: Final = re.compile(r"([][&~|^])")
_ESCAPED: Final = r"\\\1"


def expand_pattern(pattern: str) -> list[str]:
    """Return the files and folders that an absolute pattern means, in the order of their names.

    Raises `FileError` for a bracket that is not closed.
    """
    found: set[str] = set()
    for one in _alternatives(pattern, pattern):
        found.update(_matches([part for part in one.split("/") if part], pattern))
    return sorted(found)


def name_pattern(name: str, pattern: str) -> re.Pattern[str]:
    r"""Return what matches the names that a part of a pattern means. Raises `FileError`.

    >>> bool(name_pattern("a[^b-c]*", "").fullmatch("axy")), bool(name_pattern(r"a\*", "").fullmatch("ab"))
    (True, False)
    """
    made, i = "", 0
    while i < len(name):
        one = name[i]
        i += 1
        if one == "\\":
            made += re.escape(name[i : i + 1])
            i += 1
        elif one == "[":
            end = name.find("]", i + 1 + name.startswith(("^", "!"), i))
            if end < 0:
                raise FileError(pattern, "a pattern of paths", "a bracket that is not closed")
            inner = name[i:end]
            mark = "^" if inner.startswith(("^", "!")) else ""
            # A hyphen makes a range, all else stands for itself.
            made += f"[{mark}{_IN_BRACKETS.sub(_ESCAPED, inner[len(mark) :])}]"
            i = end + 1
        else:
            made += {"*": ".*", "?": "."}.get(one) or re.escape(one)
    try:
        return re.compile(made, re.DOTALL)
    except re.error as error:
        raise FileError(pattern, "a pattern of paths", str(error)) from error


def _alternatives(text: str, pattern: str) -> Iterator[str]:
    """Yield what the first braces of a pattern stand for, and those in what they yield."""
    start = _find(text, "{", 0)
    if start < 0:
        yield text
        return
    depth, ends, i = 0, [start], start
    while i < len(text):
        one = text[i]
        i += 2 if one == "\\" else 1
        depth += (one == "{") - (one == "}")
        if (one == "," and depth == 1) or (one == "}" and depth == 0):
            ends.append(i - 1)
        if one == "}" and depth == 0:
            break
    else:
        raise FileError(pattern, "a pattern of paths", "a brace that is not closed")
    for before, end in pairwise(ends):
        yield from _alternatives(text[:start] + text[before + 1 : end] + text[ends[-1] + 1 :], pattern)


def _find(text: str, mark: str, start: int) -> int:
    i = start
    while i < len(text):
        if text[i] == mark:
            return i
        i += 2 if text[i] == "\\" else 1
    return -1


def _matches(parts: list[str], pattern: str) -> list[str]:
    """Return the paths whose names match the parts of a pattern."""
    found = [""]
    for part in parts:
        if not any(mark in part for mark in "*?["):
            plain = re.sub(r"\\(.)", r"\1", part)
            found = [f"{path}/{plain}" for path in found if os.path.lexists(f"{path}/{plain}")]
            continue
        matcher = name_pattern(part, pattern)
        found = [f"{path}/{name}" for path in found for name in _names_in(path or "/") if matcher.fullmatch(name)]
    return [path for path in found if os.path.exists(path)]  # noqa: PTH110


def _names_in(path: str) -> list[str]:
    try:
        return os.listdir(path)  # noqa: PTH208
    except OSError:
        return []


# The columns of messages as a runner reads them. `length` is that of the whole message, of which `raw` has the
# beginning if it is longer than one may be. `line` and `clock` are those of a reject that is read again, whose lane was
# left long ago. Files have `size` as well, that of each in bytes.
COLUMNS: Final = ("raw", "length", "key", "topic", "partition", "offset", "file", "line", "clock")
# One more column has headers of Kafka's records, if a format reads them: null, or a list of `key` and `value`.
STATED: Final = "stated"
# Options of Spark's source of Kafka under which one task has no whole topic partition, or messages are passed over.
_REFUSED: Final = frozenset({"minpartitions", "maxrecordsperpartition", "failondataloss", "includeheaders"})
# How options begin that have a point in their name: those of Kafka's client, and two kinds of Spark's own.
_PREFIXES: Final = ("kafka.", "fetchoffset.", "kafkaconsumer.", "databricks.")
# What Kafka's client says of a topic that there is not, which it does not name.
_UNKNOWN_TOPIC: Final = ("UnknownTopicOrPartition", "does not host this topic")


@dataclass(frozen=True)
class Kafka:
    """Topics of a Kafka cluster.

    * `servers` (str): `host:port` of some brokers, separated by commas.
    * `topics` (tuple of str) or `pattern` (str): names, or a regular expression of Java's that names match.
    * `options` (dict): those of Spark's Kafka source, such as `kafka.security.protocol`; their values are not shown.
    * `most` (int or None): how many messages a batch has at most.
    """

    servers: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    most: int | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` unless there are topics or a pattern, and for options that would lose messages."""
        check_most(self.most)
        if bool(self.topics) == (self.pattern is not None):
            raise ValueError("Kafka needs either topics or a pattern of their names")
        refused = sorted(name for name in self.options if name.lower() in _REFUSED)
        if refused:
            raise ValueError(f"the options {', '.join(refused)} of Spark's source of Kafka cannot be set")
        check_prefixes(self.options)

    @property
    def name(self) -> str:
        """What the source is called in messages."""
        return f"Kafka at {self.servers}"

    def explain(self, said: str) -> str:
        """Return what is said of a failure, with the requested topics if Kafka lacks one of them."""
        is_unknown = self.topics and any(word in said for word in _UNKNOWN_TOPIC)
        return f"{said} Asked for were the topics {', '.join(map(plain, self.topics))}" if is_unknown else said

    def check_path(self) -> str | None:
        """Check nothing: no part of the source is on this machine."""
        return None

    def check_outside(self, folder: str) -> None:
        """Check nothing: what is written to a folder is not read."""


@dataclass(frozen=True)
class Files:
    """Files of JSON lines, plain or packed with gzip or Zstandard: one, a pattern of paths, or a folder with new ones.

    A file must be complete when it appears, and its name must not begin with `_` or `.`.

    * `path` (str): a path or an address that Spark reads.
    * `most` (int or None): how many files a batch has at most.
    """

    path: str
    most: int | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` for a batch without files."""
        check_most(self.most)

    @property
    def name(self) -> str:
        """What the source is called in messages."""
        return self.path

    def explain(self, said: str) -> str:
        """Return what is said of a failure, which names its file."""
        return said

    def check_outside(self, folder: str) -> None:
        """Raise `FileError` if files in a local folder, which a pipeline writes to, would be read."""
        if "://" in self.path:
            return
        own = Path(folder).resolve()
        for one in expand_pattern(str(Path.cwd() / self.path)) if not Path(self.path).exists() else [self.path]:
            root = Path(one).resolve()
            is_within = own == root or (root.is_dir() and own.is_relative_to(root))
            if is_within and not any(part.startswith(("_", ".")) for part in own.relative_to(root).parts):
                raise FileError(self.path, "files apart from what the pipeline writes", f"{folder} among them")

    def check_path(self) -> str | None:
        """Return a remark about a local path whose pattern matches nothing, or whose folder has no file.

        Raises `FileError` for a path where nothing is, and for an unclosed bracket.
        """
        if "://" in self.path:
            return None
        if Path(self.path).exists():
            check_stored(self.path)
            check_links(Path(self.path).resolve())
            if Path(self.path).is_dir() and not _has_file(Path(self.path)):
                return f"{plain(self.path)} has no file so far"
        elif not any(mark in self.path for mark in "*?[{"):
            raise FileError(self.path, "a file or folder", "none")
        elif not expand_pattern(str(Path.cwd() / self.path)):
            return f"no file or folder matches {plain(self.path)} so far"
        return None


def _has_file(folder: Path) -> bool:
    """Return whether a folder has a file that is read."""
    for place, folders, files in os.walk(folder, followlinks=True):
        if any(name[0] not in "_." and Path(place, name).exists() for name in files):
            return True
        folders[:] = [name for name in folders if name[0] not in "_."]
    return False


def check_most(most: int | None) -> None:
    """Raise `ValueError` for a number of messages, or files, of which a batch has none."""
    if most is not None and most < 1:
        raise ValueError(f"most is how many messages, or files, a batch has at most: at least 1, not {most}")


def check_prefixes(options: Iterable[str]) -> None:
    """Raise `ValueError` for the name of an option of Kafka's client without what it begins with: Spark ignores it."""
    for name in options:
        if "." in name and not name.lower().startswith(_PREFIXES):
            right = shown(f"{_PREFIXES[0]}{name}")
            raise ValueError(f"options of Kafka's client begin with 'kafka.', such as {right}, not {shown(name)}")


def check_stored(path: str) -> None:
    """Raise `FileError` for a pipe, a socket or a device: what comes out of it is gone before it is written."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):  # noqa: PTH110, PTH112, PTH113
        raise FileError(path, "a file that can be read again", "a pipe, a socket or a device")


def check_links(root: Path) -> None:
    """Raise `FileError` for a folder to which links within another lead again: it would be read again.

    It is also raised for what is neither a file nor a folder, of which reading would wait for a writer.
    """
    seen: set[str] = set()
    waiting = [str(root)] if root.is_dir() else []
    while waiting:
        folder = waiting.pop()
        real = os.path.realpath(folder)
        if real in seen:
            raise FileError(folder, "a folder that is read once", f"a link to {real}, which is read already")
        seen.add(real)
        # What somebody moves away meanwhile is not there.
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(("_", ".")):
                    continue
                if entry.is_dir():
                    waiting.append(entry.path)
                elif not entry.is_file():
                    check_stored(entry.path)
