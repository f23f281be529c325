r"""Pattern of paths as Hadoop reads it: `*` and `?` within a name, `[a-z]`, `[^a-z]`, `{a,b}`, `\` before a mark."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cdcavro.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator

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
