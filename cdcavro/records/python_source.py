r"""Python source for the texts and names in a schema: literals that no text can break out of, and names.

Only ASCII, and in docstrings letters that cannot be mistaken for others, are written as they are; any other
character is escaped as `\u` and its code, including the backslash and the quote. So no text ends its literal,
a formatter changes nothing, and Python reads back exactly the same text.

A name that Python allows in its place is kept. Otherwise leading underscores are removed (Python mangles or
reserves names with them), an underscore is appended to a name that is already in use, and a long name is cut
and ends in part of its SHA-256. No two names become the same.
"""

from __future__ import annotations

import hashlib
import keyword
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

WIDTH: Final = 120
# The longest literal on a line of its own, indented by four columns, without its quotes.
_PART: Final = WIDTH - 4 - 2
# Letters, CJK and CJK punctuation: fixed ranges, so that the output does not depend on the Unicode version.
_READABLE: Final = "\u00a1-\u00ac\u00ae-\u017f\u0391-\u03c9\u0410-\u044f\u3001-\u3011\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e"
_UNFIT: Final = re.compile(r"[^ !#-\[\]-~]")
_UNFIT_IN_DOC: Final = re.compile(rf'[^ !#-\[\]-~"{_READABLE}]|""|\A"|"\Z')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ODD_LINES: Final = re.compile(r"\A\s|\s\Z|[ \t]\n|\n[ \t]|[^\S \n]")
_JSON_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[^"\s]+')
_UNFIT_IN_JSON: Final = re.compile(r"[^ !-&(-~]")
_ENDS: Final = ",}]"
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
# Python's built-in names that look like class names, in all versions so far.
CAPITALISED: Final = frozenset(_CAPITALISED.split())
# Names that the generated classes use themselves.
METHODS: Final = frozenset({"from_avro", "to_avro", "from_json", "to_json", "self", "cls"})
_OF_ENUMS: Final = (
    "capitalize casefold center count encode endswith expandtabs find format format_map index isalnum isalpha isascii"
    " isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip"
    " maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines"
    " startswith strip swapcase title translate upper zfill mro name value"
)
# Names that a StrEnum uses itself: the methods of str, and the names that enum reserves.
ENUM_NAMES: Final = frozenset(_OF_ENUMS.split())


def string_literal(text: str) -> str:
    r"""Return a text as a string literal.

    >>> print(string_literal('a "b" \\'), string_literal("\u202e"))
    "a \u0022b\u0022 \u005c" "\u202e"
    """
    return f'"{_UNFIT.sub(_escape, text)}"'


def bytes_literal(raw: bytes) -> str:
    r"""Return bytes as a bytes literal.

    >>> print(bytes_literal(b'a"'))
    b"\x61\x22"
    """
    return 'b"' + "".join(f"\\x{byte:02x}" for byte in raw) + '"'


def docstring(text: str, indent: str) -> str:
    r"""Return a text as a docstring: on several lines if none of them has odd white space, else on one line.

    `inspect.getdoc` returns the same text, except for lone surrogates, which a class cannot have in its
    docstring: they are replaced by their codes.

    >>> docstring("first\nsecond", "").splitlines()[1]
    'second'
    """
    text = _SURROGATE.sub(_escape, text)
    if "\n" not in text or _ODD_LINES.search(text):
        return f'{indent}"""{_escape_outer_blanks(_UNFIT_IN_DOC.sub(_escape, text))}"""'
    lines = [_UNFIT_IN_DOC.sub(_escape, line) for line in text.split("\n")]
    first, *rest = lines
    return "\n".join([f'{indent}"""{first}', *(indent + line if line else "" for line in rest), f'{indent}"""'])


def _escape_outer_blanks(text: str) -> str:
    """Return a text with its outer blanks escaped, which a formatter would strip from a docstring."""
    if not text.strip(" "):
        return "\\u0020" * len(text)
    start, end = len(text) - len(text.lstrip(" ")), len(text) - len(text.rstrip(" "))
    return "\\u0020" * start + text.strip(" ") + "\\u0020" * end


def assignment(start: str, literal: str) -> str:
    """Return an assignment of a literal as a formatter lays it out: in parentheses if it fits only that way.

    >>> assignment("a = ", '"b"')
    'a = "b"'
    """
    indent = " " * (len(start) - len(start.lstrip(" ")))
    if len(start + literal) <= WIDTH or len(indent + literal) + 4 > WIDTH:
        return start + literal
    return f"{start}(\n{indent}    {literal}\n{indent})"


def schema_literal(name: str, text: str) -> str:
    """Return an assignment of a schema's JSON, without white space between tokens, in lines of at most 120 columns."""
    compact = "".join(match[0] for match in _JSON_TOKEN.finditer(text))
    return text_lines(name, _UNFIT_IN_JSON.sub(_escape_json, compact).replace("\\", "\\\\"))


def text_lines(name: str, text: str) -> str:
    """Return an assignment of an ASCII text in lines; it has no apostrophes, and its backslashes are doubled."""
    parts = [_quote(part) for part in _parts(text)]
    if len(parts) == 1:
        return assignment(f"{name}: Final = ", parts[0])
    return "\n".join([f"{name}: Final = (", *(f"    {part}" for part in parts), ")"])


def _parts(text: str) -> Iterator[str]:
    at = 0
    while len(text) - at > _PART:
        end = at + _PART
        # Break after a comma or bracket if there is one, and never within a doubled backslash.
        after_token = max(text.rfind(char, at + _PART // 2, end) for char in _ENDS) + 1
        end = after_token or end
        while text[end - 1] == "\\" and (end - len(text[at:end].rstrip("\\")) - at) % 2:
            end -= 1
        yield text[at:end]
        at = end
    yield text[at:]


def _quote(part: str) -> str:
    return f"'{part}'" if '"' in part else f'"{part}"'


def _escape(match: re.Match[str]) -> str:
    return "".join(f"\\u{ord(char):04x}" if ord(char) <= _BASIC else f"\\U{ord(char):08x}" for char in match[0])


def _escape_json(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= _BASIC:
        return f"\\u{code:04x}"
    high, low = divmod(code - _BASIC - 1, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_BASIC: Final = 0xFFFF


def attribute_names(names: Sequence[str], reserved: Collection[str]) -> list[str]:
    """Return the Python names of fields or enum members, all different if the given names are.

    No new name equals one of the given names, so that both can be used side by side.

    >>> attribute_names(["id", "from", "from_", "__init__", "_1"], KEYWORDS)
    ['id', 'from__', 'from_', 'init__', 'f_1']
    """
    own = set(names)
    used = {name for name in names if plain(name) == name and name not in reserved}
    attributes = []
    for name in names:
        attribute = name
        if name not in used:
            attribute = plain(name)
            while attribute in reserved or attribute in used or attribute in own:
                attribute += "_"
            used.add(attribute)
        attributes.append(attribute)
    return attributes


def class_name(name: str) -> str:
    """Return the class name for a full name: its last part, in capitalised words.

    >>> class_name("cdcavro.oms.Canal"), class_name("shop.order_item"), class_name("_1")
    ('Canal', 'OrderItem', 'Record1')
    """
    return _shorten(_words(name.rpartition(".")[2]), LONGEST_CLASS, "")


def _words(name: str) -> str:
    joined = "".join(part[:1].upper() + part[1:] for part in _ascii(name).split("_"))
    return joined if joined[:1].isalpha() else f"Record{joined}"


def class_names(named: Sequence[tuple[str, str]], reserved: Iterable[str]) -> list[str]:
    """Return class names, all different, for pairs of a schema's label and a full name.

    Names whose last parts are the same are all prefixed with the label, the namespace, or both.

    >>> class_names([("v1", "a.X"), ("v1", "b.X"), ("v1", "a.Y"), ("v2", "a.Y")], ())
    ['AX', 'BX', 'V1Y', 'V2Y']
    """
    reserved = CAPITALISED.union(reserved)
    groups: dict[str, list[tuple[str, str]]] = {}
    for pair in named:
        groups.setdefault(class_name(pair[1]), []).append(pair)
    distinct: dict[tuple[str, str], str] = {}
    for short, group in groups.items():
        distinct |= dict(zip(group, _distinct_names(short, group), strict=True))
    used: set[str] = set()
    listed = []
    for pair in named:
        name, number = distinct[pair], 1
        if name in reserved:
            name = f"{name}Record"
        while (f"{name}{number}" if number > 1 else name) in used | reserved:
            number += 1
        listed.append(f"{name}{number}" if number > 1 else name)
        used.add(listed[-1])
    return listed


def _distinct_names(short: str, group: Sequence[tuple[str, str]]) -> list[str]:
    """Return the names of a group in the first form in which they all differ, or else the short form."""
    if len(group) == 1:
        return [short]
    spaces = [_words(full.rpartition(".")[0].replace(".", "_")) if "." in full else "" for _, full in group]
    labels = [_words(label) for label, _ in group]
    labelled = [f"{label}{short}" for label in labels]
    spaced = [f"{space}{short}" for space in spaces]
    both = [f"{label}{space}{short}" for label, space in zip(labels, spaces, strict=True)]
    forms = (form for form in (labelled, spaced, both) if max(Counter(form).values()) == 1)
    return [_shorten(name, LONGEST_CLASS, "") for name in next(forms, [short] * len(group))]


def label_of(text: str) -> str:
    """Return a schema's label, such as the name of its file, in a form that can be part of a name."""
    words = "".join(char if char.isascii() and char.isalnum() else "_" for char in text)
    return _shorten(words.strip("_") or "schema", LONGEST_CLASS, "_")


def unique_labels(labels: Iterable[str]) -> list[str]:
    """Return labels that all differ, also in capitals: repeated ones get a number."""
    unique: list[str] = []
    used: set[str] = set()
    for label in labels:
        number, numbered = 1, label
        while numbered.upper() in used:
            number += 1
            numbered = f"{label}_{number}"
        used.add(numbered.upper())
        unique.append(numbered)
    return unique


def plain(name: str) -> str:
    """Return a name without leading underscores, starting with a letter, and shortened if it is long."""
    bare = _ascii(name).lstrip("_")
    return _shorten(bare if bare[:1].isalpha() else f"f_{bare}", LONGEST, "_")


def _ascii(name: str) -> str:
    """Return a name with the letters of other scripts by number: Python takes some of them for others."""
    return name if name.isascii() else "".join(char if char.isascii() else f"u{ord(char):04x}" for char in name)


def _shorten(name: str, most: int, joint: str) -> str:
    if len(name) <= most:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASHED]
    return f"{name[: most - _HASHED - len(joint)]}{joint}{digest}"
