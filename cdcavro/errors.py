"""The errors of cdcavro: one tree, so that one `except` catches them all.

CdcAvroError
├── UnknownFormatError    (LookupError)   a format name that is not known
├── SchemaError           (ValueError)    an Avro schema that breaks a rule
│   └── ResolutionError                   a reader's schema that cannot read a writer's
├── MessageError          (ValueError)    a faulty message: where, what was expected, what came
│   ├── TextError                         text that is not exactly one JSON value
│   ├── StructureError                    JSON that is not shaped like its format
│   │   └── MisfitError                   a value that its column's type cannot carry
│   ├── UnknownMessageError               JSON that is no message of a known format
│   └── PayloadError                      bytes that are not a datum of the schema
├── OrderError            (ValueError)    a change whose order cannot be known
├── DdlError              (ValueError)    a DDL statement that is not understood
├── FileError             (ValueError)    a file that is not what the command needs
├── RegistryError         (OSError)       a schema registry that fails or refuses a request
├── UnknownSchemaError    (LookupError)   an id, a subject or a version that the registry lacks
├── IncompatibleError     (ValueError)    a schema that its subject's compatibility level refuses
├── JobError              (RuntimeError)  a job on Spark that failed
└── SetupError            (RuntimeError)  something missing on the machine: Java, a jar, a package

    try:
        payload = cdcavro.encode(text, "oms_canal")
    except cdcavro.MessageError as error:
        print(error.path, error.expected, error.got)
"""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_CREDENTIALS = re.compile(r"://[^/@\s]+@")
_SHOWN = 80
_STEPS = 128
_BOUND = 1000
_REASONS = 20
# What `str.isprintable` takes for printable and shows nothing: characters that Unicode lets a reader ignore (Default_Ignorable_
# Code_Point in https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt), blanks and joiners.
_UNSEEN = re.compile(
    "[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2800\\u2d7f\\u3164\\ufe00-\\ufe0f\\uffa0\\ufff0-\\ufff8\\ufffc"
    "\\U0001107f\\U00016fe4\\U0001d159\\U000e0000-\\U000e0fff]"
)
# No script writes more marks above each other.
_MARKS = 3
# A word, or what `repr` has escaped before it.
_WORD = re.compile(r"\\[A-Za-z\\]|[^\W\d_]+")
_LATIN = re.compile("[A-Za-z]")
# Letters of other scripts that look like one of ASCII's: the Cyrillic, Greek, Armenian and phonetic ones of "Confusables"
# (Unicode Technical Standard 39).
_ALIKE = re.compile(
    "[\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c-\u041e\u0420-\u0423\u0425\u0430\u0435\u043e\u0440\u0441\u0443\u0445"
    "\u0455\u0456\u0458\u0474\u0475\u04ae\u04af\u04bb\u04c0\u04cf\u0501\u050c\u051a-\u051d\u0391\u0392\u0395-\u0397\u0399\u039a"
    "\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03b9\u03bd\u03bf\u03c1\u0555\u0570\u0578\u057d\u0585\u0251\u0261]"
)


class CdcAvroError(Exception):
    """The base class of every error that cdcavro raises deliberately."""


class UnknownFormatError(CdcAvroError, LookupError):
    """A format name that is not known.

    Attributes: `name` (str), as requested; `known` (tuple of str), the names of the known formats.
    """

    def __init__(self, name: object, known: Iterable[str]) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(name, self.known)

    def __str__(self) -> str:
        near = difflib.get_close_matches(str(self.name), self.known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(self.known)}"
        return f"unknown format {shown(self.name)}: {hint}"


class SchemaError(CdcAvroError, ValueError):
    """An Avro schema that breaks a rule of the specification or of cdcavro.

    Attributes: `where` (str), the place in the schema; `reason` (str).
    """

    def __init__(self, where: str, reason: str) -> None:
        self.where = where
        self.reason = reason
        super().__init__(where, reason)

    def __str__(self) -> str:
        return f"schema {_bounded(self.where)}: {_bounded(self.reason)}"


class ResolutionError(SchemaError):
    """A reader's schema that cannot read what a writer's schema wrote."""


class MessageError(CdcAvroError, ValueError):
    """A faulty message.

    Attributes: `format` (str or None), `path` (str, a JSON path such as `$.data[0]`),
    `pointer` (str, the same place as an RFC 6901 pointer), `expected` and `got` (str); `change` (`Change` or None),
    what is certain of a change whose rows cannot be read.
    """

    change: Any = None

    def __init__(self, expected: str, got: str, *, pointer: str = "", format: str | None = None) -> None:
        self.expected = expected
        self.got = got
        self.pointer = pointer
        self.format = format
        super().__init__(expected, got)

    def below(self, pointer: str) -> None:
        """Prepend `pointer` to the place of the fault, while the error is on its way up."""
        self.pointer = pointer + self.pointer

    @property
    def path(self) -> str:
        """The place of the fault as a JSON path."""
        return json_path(self.pointer)

    @property
    def reason(self) -> str:
        """The error's sentence without the format and the path."""
        return f"expected {self.expected}, got {self.got}"

    @property
    def fields(self) -> dict[str, str | None]:
        """What a reject says about the fault: format, path and message."""
        return {"format": self.format, "path": self.path, "message": str(self)}

    def __str__(self) -> str:
        return f"{self.format or 'message'}: {self.path}: {self.reason}"


class TextError(MessageError):
    """Text that is not UTF-8, not exactly one JSON value, or beyond a bound."""


class StructureError(MessageError):
    """JSON that is not shaped like its format, or a value that does not convert exactly."""


class MisfitError(StructureError):
    """A value that its column's type cannot carry exactly."""


class UnknownMessageError(MessageError):
    """JSON that is not a message of any known format."""


class PayloadError(MessageError):
    """Bytes that are not exactly one Avro datum of the schema."""


class OrderError(CdcAvroError, ValueError):
    """A change with neither a position in the source nor a place of arrival, or changes with mixed kinds of positions.

    Attributes: `format` and `table` (str or None); `got` (str), "none" for a change without either; `expected` (str),
    if neither of these two is the fault.
    """

    def __init__(self, format: str | None, table: str | None, got: str = "none", expected: str = "") -> None:
        self.format = format
        self.table = table
        self.got = got
        self.expected = expected
        super().__init__(format, table, got, expected)

    def __str__(self) -> str:
        table = "" if self.table is None else f" of {shown(self.table)}"
        expected = self.expected or f"a position or a place to order the change{table} by"
        if self.got != "none" and not self.expected:
            expected = f"the same kind of position in all changes{table}"
        return f"{self.format or 'change'}: expected {expected}, got {self.got}"


class DdlError(CdcAvroError, ValueError):
    """A DDL statement that is not understood.

    Attributes: `dialect` (str), the SQL dialect that was expected; `expected` and `got` (str); `line` and
    `column` (int, from 1), the place in the text.
    """

    def __init__(self, dialect: str, expected: str, got: str, line: int, column: int) -> None:
        self.dialect = dialect
        self.expected = expected
        self.got = got
        self.line = line
        self.column = column
        super().__init__(dialect, expected, got, line, column)

    def __str__(self) -> str:
        return f"{self.dialect} DDL: line {self.line}, column {self.column}: expected {self.expected}, got {self.got}"


class FileError(CdcAvroError, ValueError):
    """A file that is not what the command needs.

    Attributes: `file` (str), `expected` and `got` (str).
    """

    def __init__(self, file: str, expected: str, got: str) -> None:
        self.file = file
        self.expected = expected
        self.got = got
        super().__init__(file, expected, got)

    def __str__(self) -> str:
        return f"{visible(self.file)}: expected {visible_lines(self.expected)}, got {visible_lines(self.got)}"


class RegistryError(CdcAvroError, OSError):
    """A schema registry that cannot be reached, refuses a request, or sends an invalid response.

    Attributes: `url` (str), without credentials; `reason` (str); `status` (int or None), the HTTP
    status; `subject` (str or None).
    """

    def __init__(self, url: str, reason: str, *, status: int | None = None, subject: str | None = None) -> None:
        self.url = url
        self.reason = reason
        self.status = status
        self.subject = subject
        super().__init__(url, reason)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all attributes: `OSError` by itself would keep only its arguments."""
        return type(self), (self.url, self.reason), {"status": self.status, "subject": self.subject}

    def __str__(self) -> str:
        about = "" if self.subject is None else f"subject {shown(self.subject)}: "
        status = "" if self.status is None else f"{self.status}: "
        return f"registry {_bounded(self.url)}: {about}{status}{_bounded(self.reason)}"


class UnknownSchemaError(CdcAvroError, LookupError):
    """An id, a GUID, a fingerprint, a subject or a version that the registry lacks.

    Attributes: `url` (str), that of the registry, without credentials; `what` (str), such as `id 7`.
    """

    def __init__(self, url: str, what: str) -> None:
        self.url = url
        self.what = what
        super().__init__(url, what)

    def __str__(self) -> str:
        return f"registry {_bounded(self.url)}: there is no {_bounded(self.what)}"


class IncompatibleError(CdcAvroError, ValueError):
    """A schema that its subject's compatibility level refuses.

    Attributes: `subject` (str); `compatibility` (str), its level; `reasons` (tuple of str), each with
    the version that it is about.
    """

    def __init__(self, subject: str, compatibility: str, reasons: Iterable[str]) -> None:
        self.subject = subject
        self.compatibility = compatibility
        self.reasons = tuple(reasons)
        super().__init__(subject, compatibility, self.reasons)

    def __str__(self) -> str:
        listed = "".join(f"\n  {_bounded(reason)}" for reason in self.reasons[:_REASONS])
        more = len(self.reasons) - _REASONS
        rest = f"\n  ... and {more:,} more" if more > 0 else ""
        return f"subject {shown(self.subject)} is {self.compatibility}, and the schema is not:{listed}{rest}"


class JobError(CdcAvroError, RuntimeError):
    """A job that failed for a reason other than its messages: a file, a folder, the cluster, a killed process."""

    def __str__(self) -> str:
        return visible_lines(super().__str__())


class SetupError(CdcAvroError, RuntimeError):
    """Something missing on the machine: Java, a jar or a package. The error's sentence says how to get it."""


def shown(value: object) -> str:
    r"""Return a message's value or name for use in a sentence: quoted, at most 80 characters, with nothing hidden.

    Letters of any script are as they are; what `visible` escapes is escaped.

    >>> shown("a" * 100)[-5:], shown("订单"), shown("a\u202eb")
    ("a...'", "'订单'", "'a\\u202eb'")
    """
    text = value if isinstance(value, str) else str(value)
    return visible(repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "..."))


def shorten(text: str, most: int) -> str:
    """Return a text as it is if it has at most `most` characters, else its first words with dots behind them.

    >>> shorten("no answer of the receiver", 11), shorten("x" * 20, 11)
    ('no answer ...', 'xxxxxxxxxxx ...')
    """
    if len(text) <= most:
        return text
    words = text[: most + 1].rpartition(" ")[0]
    return f"{words if 2 * len(words) > most else text[:most]} ..."


def hide_credentials(text: str) -> str:
    """Return a text without the credentials of addresses.

    >>> hide_credentials("no answer of s3://user:secret@host/lake")
    'no answer of s3://host/lake'
    """
    return _CREDENTIALS.sub("://", text)


def plain(name: str) -> str:
    r"""Return a name for use in a sentence or a table: as it is if it looks like no other, else as `shown`.

    >>> plain("orders"), plain("orders\u3164"), plain("orders ")
    ('orders', "'orders\\u3164'", "'orders '")
    """
    return name if name and visible(name) == name == name.strip(" ") else shown(name)


def visible(text: str) -> str:
    r"""Return a text in which nothing is hidden.

    Escaped are what cannot be printed, what is printed and shows nothing, marks that pile up or belong to no letter,
    what Unicode's normal form C would replace, as another text looks the same, and letters of another script that look
    like ASCII's in a word that has some of these, too.

    >>> visible("a\u202eb\u3164"), visible("cafe\u0301"), visible("café"), visible("\u0456d")
    ('a\\u202eb\\u3164', 'cafe\\u0301', 'café', '\\u0456d')
    """
    if text.isascii() and text.isprintable():
        return text
    if not text.isascii() and _ALIKE.search(text):
        text = _WORD.sub(_with_alike_escaped, text)
    if all(_facts_of(one)[:3] == _SEEN for one in set(text)):
        return text
    is_normal = unicodedata.is_normalized("NFC", text)
    made, marks, is_letter = [], 0, False
    for one in text:
        is_mark, is_printed, is_always_normal, is_base = _facts_of(one)
        marks, is_letter = (marks + 1, is_letter) if is_mark else (0, is_base)
        is_hidden = (
            not is_printed or (is_mark and (marks > _MARKS or not is_letter)) or not (is_normal or is_always_normal)
        )
        made.append(ascii(one)[1:-1] if is_hidden else one)
    return "".join(made)


def _with_alike_escaped(word: re.Match[str]) -> str:
    return _ALIKE.sub(lambda letter: ascii(letter[0])[1:-1], word[0]) if _LATIN.search(word[0]) else word[0]


def visible_lines(text: str) -> str:
    """Return a text of several lines as `visible` does each of them."""
    return "\n".join(map(visible, text.split("\n")))


# A character that is no mark, shows something, and is what normal form C has.
_SEEN: Final = (False, True, True)


@lru_cache(maxsize=1 << 14)
def _facts_of(one: str) -> tuple[bool, bool, bool, bool]:
    """Return whether a character is a mark, shows something, is what normal form C has, and may bear marks.

    One that normal form C puts together with others is not what it has: a mark, or a part of a syllable.
    """
    category = unicodedata.category(one)
    is_part = unicodedata.combining(one) or unicodedata.normalize("NFC", one) != one or "\u1161" <= one <= "\u11c2"
    is_printed = one.isprintable() and _UNSEEN.match(one) is None
    return category[0] == "M", is_printed, not is_part, category[0] not in "CPZ"


def number_of(count: int, noun: str) -> str:
    """Return a number of things for use in a sentence; the noun is that of one, or of one and of several with a slash.

    >>> number_of(1, "file"), number_of(1000, "file"), number_of(2, "batch/batches")
    ('1 file', '1,000 files', '2 batches')
    """
    one, _, several = noun.partition("/")
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def _bounded(text: str) -> str:
    text = visible_lines(text)
    return text if len(text) <= _BOUND else text[:_BOUND] + "..."


def json_path(pointer: str) -> str:
    """Return an RFC 6901 pointer as a JSON path (RFC 9535) of at most 128 names of at most 80 characters each.

    >>> json_path("/data/0/we ird")
    '$.data[0]["we ird"]'
    """
    steps = pointer.split("/", _STEPS + 1)[1:]
    return "$" + "".join(map(_step, steps[:_STEPS])) + ("..." if len(steps) > _STEPS else "")


def _step(token: str) -> str:
    name = token.replace("~1", "/").replace("~0", "~")
    if len(name) > _SHOWN:
        name = name[:_SHOWN] + "..."
    if _PLAIN.match(name):
        return "." + name
    if name.isascii() and name.isdigit():
        return f"[{name}]"
    return f"[{_ESCAPE.sub(_as_json, visible(json.dumps(name, ensure_ascii=False)))}]"


# As JSON and `visible` escape characters.
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-f]{2})|U([0-9a-f]{8})|.)")


def _as_json(escape: re.Match[str]) -> str:
    digits = escape[1] or escape[2]
    if digits is None:
        return escape[0]
    units = chr(int(digits, 16)).encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
