"""Names of schemas as names of Python: of classes, fields and members of enums.

A name stays as it is if Python can hold it there. Leading underscores go (what Python mangles or
takes for its own begins with them), an underscore goes behind a name that is taken, long names are
cut and end in a part of their SHA-256. No two names give one.
"""

from __future__ import annotations

import hashlib
import keyword
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

LONGEST: Final = 64
LONGEST_CLASS: Final = 40
_HASHED: Final = 8
KEYWORDS: Final = frozenset(keyword.kwlist)
BUILTINS: Final = frozenset({"bool", "bytes", "dict", "float", "int", "list", "str"})
_CAPITALISED: Final = (
    "ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError "
    "BrokenPipeError BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError "
    "ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning "
    "EnvironmentError Exception ExceptionGroup False FileExistsError FileNotFoundError FloatingPointError "
    "FutureWarning GeneratorExit IOError ImportError ImportWarning IndentationError IndexError InterruptedError "
    "IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError None "
    "NotADirectoryError NotImplemented NotImplementedError OSError OverflowError PendingDeprecationWarning "
    "PermissionError ProcessLookupError PythonFinalizationError RecursionError ReferenceError ResourceWarning "
    "RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError "
    "SystemExit TabError TimeoutError True TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError "
    "UnicodeError UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning ZeroDivisionError"
)
# Names of Python's own that look like those of classes, in all its versions so far.
CAPITALISED: Final = frozenset(_CAPITALISED.split())
# What the classes have themselves.
METHODS: Final = frozenset({"from_avro", "to_avro", "from_json", "to_json", "self", "cls"})
_OF_ENUMS: Final = (
    "capitalize casefold center count encode endswith expandtabs find format format_map index isalnum isalpha isascii"
    " isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip"
    " maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines"
    " startswith strip swapcase title translate upper zfill mro name value"
)
# What a StrEnum has itself: the methods of str and the names that enum keeps.
ENUM_NAMES: Final = frozenset(_OF_ENUMS.split())


def attribute_names(names: Sequence[str], reserved: Collection[str]) -> list[str]:
    """Return names of fields or members in Python, all different, for names that are all different.

    A new name is none of the old ones either, so that both may be used side by side.

    >>> attribute_names(["id", "from", "from_", "__init__", "_1"], KEYWORDS)
    ['id', 'from__', 'from_', 'init__', 'f_1']
    """
    own = set(names)
    taken = {name for name in names if plain(name) == name and name not in reserved}
    made = []
    for name in names:
        found = name
        if name not in taken:
            found = plain(name)
            while found in reserved or found in taken or found in own:
                found += "_"
            taken.add(found)
        made.append(found)
    return made


def class_name(name: str) -> str:
    """Return the last part of a full name as the name of a class.

    >>> class_name("cdcavro.oms.Canal"), class_name("shop.order_item"), class_name("_1")
    ('Canal', 'OrderItem', 'Record1')
    """
    return _bounded(_words(name.rpartition(".")[2]), LONGEST_CLASS, "")


def _words(name: str) -> str:
    joined = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    return joined if joined[:1].isalpha() else f"Record{joined}"


def class_names(named: Sequence[tuple[str, str]], reserved: Iterable[str]) -> list[str]:
    """Return names of classes for pairs of a schema's label and a full name, all different.

    Where the last parts of names are the same, the label, the namespace or both stand before all of them.

    >>> class_names([("v1", "a.X"), ("v1", "b.X"), ("v1", "a.Y"), ("v2", "a.Y")], ())
    ['AX', 'BX', 'V1Y', 'V2Y']
    """
    reserved = CAPITALISED.union(reserved)
    groups: dict[str, list[tuple[str, str]]] = {}
    for one in named:
        groups.setdefault(class_name(one[1]), []).append(one)
    made: dict[tuple[str, str], str] = {}
    for short, group in groups.items():
        made |= dict(zip(group, _apart(short, group), strict=True))
    taken: set[str] = set()
    listed = []
    for one in named:
        found, number = made[one], 1
        if found in reserved:
            found = f"{found}Record"
        while (f"{found}{number}" if number > 1 else found) in taken | reserved:
            number += 1
        listed.append(f"{found}{number}" if number > 1 else found)
        taken.add(listed[-1])
    return listed


def _apart(short: str, group: Sequence[tuple[str, str]]) -> list[str]:
    """Return the first form of the names of a group in which they differ."""
    if len(group) == 1:
        return [short]
    spaces = [_words(full.rpartition(".")[0].replace(".", "_")) if "." in full else "" for _, full in group]
    labels = [_words(label) for label, _ in group]
    named = [f"{label}{short}" for label in labels]
    spaced = [f"{space}{short}" for space in spaces]
    both = [f"{label}{space}{short}" for label, space in zip(labels, spaces, strict=True)]
    found = next((form for form in (named, spaced, both) if max(Counter(form).values()) == 1), [short] * len(group))
    return [_bounded(one, LONGEST_CLASS, "") for one in found]


def label_of(text: str) -> str:
    """Return a schema's label, such as the name of its file, as a part of names."""
    words = "".join(char if char.isascii() and char.isalnum() else "_" for char in text)
    return _bounded(words.strip("_") or "schema", LONGEST_CLASS, "_")


def unique_labels(labels: Iterable[str]) -> list[str]:
    """Return labels that are all different, in capitals or not, by a number behind those that come again."""
    made: list[str] = []
    taken: set[str] = set()
    for label in labels:
        number, found = 1, label
        while found.upper() in taken:
            number += 1
            found = f"{label}_{number}"
        taken.add(found.upper())
        made.append(found)
    return made


def plain(name: str) -> str:
    """Return a name without leading underscores, beginning with a letter, and cut if it is long."""
    bare = name.lstrip("_")
    return _bounded(bare if bare[:1].isalpha() else f"f_{bare}", LONGEST, "_")


def _bounded(name: str, most: int, joint: str) -> str:
    if len(name) <= most:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASHED]
    return f"{name[: most - _HASHED - len(joint)]}{joint}{digest}"
