"""The machine where nothing is compiled: it leaves every message and payload to the exact way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro import binary
from cdcavro.avro.binary import write_long, write_string
from cdcavro.exact import jsontext
from cdcavro.exact.numbers import MAX_LONG, MIN_LONG, ExactNumber, integer, is_number, number, plain_text

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Mapping, Sequence

    from msgspec import Struct

    from cdcavro.avro import translation_program as translation
    from cdcavro.engine.column_program import ColumnProgram
    from cdcavro.engine.payloads import Slices
    from cdcavro.engine.program import CellRule, Program, RowProgram, RowTest

    Filled = tuple[Any, Any, Any, int, int]
    Row = tuple[int, bytes | None, bytes, *tuple[Any, ...]]
    Cell = tuple[str, Callable[[Any], Any] | None, int, int, int]

COMPILED: Final = False
_FRACTION: Final = frozenset(".eE")
_NUMBERS: Final = frozenset({int, float, ExactNumber})
_TEXTS: Final = frozenset({str, type(None)})
_OPTIONALS: Final = {"l": int, "s": str, "a": tuple}
same: Final = jsontext.same
differences: Final = jsontext.differences
Decoder = binary.Decoder


class Translator:
    """What one program does, for one payload at a time."""

    __slots__ = ()

    def __init__(self, program: translation.TranslationProgram) -> None:
        """Take a program, which nothing runs here."""

    def translate(self, payload: bytes) -> bytes | None:  # noqa: ARG002
        """Return a writer's payload as the reader's, itself if both encode it alike; None where it is left."""
        return None


class Translators:
    """Translators of the values of columns: a value's own is told by its prefix, or by a number beside it."""

    __slots__ = ()

    def add(self, number: int, translator: Translator, prefix: bytes) -> None:
        """Let values with a prefix, or with a number beside them, be translated in a way."""

    def by_prefix(
        self,
        column: Slices,  # noqa: ARG002
        said: tuple[Any, Any, Any],  # noqa: ARG002
        first: int,
        base: int,  # noqa: ARG002
        bounds: tuple[int, int],  # noqa: ARG002
    ) -> tuple[bytes, int]:
        """Translate framed values of a column from an index on; return what is written, and the index of the one left.

        `said` has three arrays of 32-bit integers, one for each value, in which is written: the number of its schema;
        where in the value, counted from 1, the payload begins that is the reader's as it is, 0 if it is written, -1
        for a null; and where it ends in what is written, behind `base` bytes. `bounds` are the most bytes to write of
        all values, and the most of a payload.
        """
        return b"", first

    by_number = by_prefix


def payload_ends(translator: Translator, payloads: bytes, count: int) -> bytes | None:  # noqa: ARG001
    """Return where payloads end that stand one behind another, as 32-bit integers; None if one is left.

    The translator is one that checks them.
    """
    return None


class Filler:
    """What one program does with columns of payloads."""

    __slots__ = ()

    def __init__(self, program: ColumnProgram) -> None:
        """Take a program, which nothing runs here."""

    def fill(self, column: Slices) -> tuple[list[Filled], int, bool]:  # noqa: ARG002
        """Read the payloads of a column (`Slices`) up to one that is left.

        Return what they fill, how many there are, and whether it is left because the columns of rows would take too
        much. Of each column of the program these are three buffers, or None for one that is not needed: which cells
        are not null, the cells, and their data; then how many cells there are, and how many are null. A column of rows
        that are all null has no buffers.
        """
        return [], 0, False


class Values:
    """The engine of one program for records: dicts, lists and scalars."""

    __slots__ = ()

    def __init__(self, program: Program) -> None:
        """Take a program, which nothing runs here."""

    def write(self, record: Any) -> bytes | None:  # noqa: ARG002
        """Return a record as a payload; None where it is left to the exact way, as whatever is faulty is."""
        return None

    def write_struct(self, struct: Struct) -> bytes | None:  # noqa: ARG002
        """Return a frozen Struct of the record's fields as a payload, None as `write`.

        A field that is None stands for no member, a tuple for a list, and another Struct for its record.
        """
        return None

    def read(self, raw: bytes, position: int = 0) -> tuple[dict[str, Any], int] | None:  # noqa: ARG002
        """Return the record of the payload at a position, and the position after it; None where it is left."""
        return None


def read_numbers(row: dict[str, Any], kinds: dict[str, bool]) -> None:
    """Put numbers in place of the texts of columns that are numbers; `kinds` says of each whether it is whole."""
    for name, value in row.items():
        if type(value) is str and name in kinds and is_number(value):
            if not kinds[name]:
                row[name] = number(value)
            elif not _FRACTION.intersection(value):
                row[name] = integer(value)


def write_numbers(row: dict[str, Any]) -> bool:
    """Put texts in place of numbers; return whether every value is now a text or null."""
    for name, value in row.items():
        if type(value) in _NUMBERS:
            row[name] = plain_text(value)
    return _TEXTS.issuperset(map(type, row.values()))


class Cells:
    """The cells of rows that are as they should be; whatever is absent, unknown or a misfit is left to the exact way.

    Made from cells (name, reader or None for null, kind, and the bytes of the value's branch and of null), from what
    stands behind them, whether a row has no others, and from what readers return for a misfit.
    """

    __slots__ = ()

    def __init__(self, cells: Sequence[Cell], end: bytes, is_whole: bool, misfit: object) -> None:  # noqa: FBT001
        """Take the cells, which nothing writes here."""

    def row(self, image: Mapping[str, Any]) -> bytes | None:  # noqa: ARG002
        """Return a row, with what stands behind its cells; None where it is left to the exact way."""
        return None

    def rows(self, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> bytes | None:  # noqa: ARG002
        """Return two rows, each of which may be None, as unions with null that comes first; None as `row`."""
        return None


def optionals(values: tuple[Any, ...], kinds: str) -> bytes | None:
    """Return values, each a union of null, which comes first, and what `kinds` says; None where one does not fit.

    The kinds are `l`, a long; `s`, a string; `a`, an array of longs, from a tuple.
    """
    out = bytearray()
    for value, kind in zip(values, kinds, strict=True):
        out.append(0 if value is None else 2)
        if value is None:
            continue
        if type(value) is not _OPTIONALS[kind]:
            return None
        if type(value) is str:
            write_string(out, value)
        elif not _write_longs(out, value):
            return None
    return bytes(out)


def _write_longs(out: bytearray, value: Any) -> bool:
    longs = value if type(value) is tuple else (value,)
    if not all(type(one) is int and MIN_LONG <= one <= MAX_LONG for one in longs):
        return False
    for one in (len(value), *value) if value and longs is value else longs:
        write_long(out, one)
    if longs is value:
        out.append(0)
    return True


class Engine:
    """The engine of one program (`Program`)."""

    __slots__ = ()

    def __init__(self, program: Program) -> None:
        """Take a program, which nothing runs here."""

    def encode(self, message: bytes | str) -> bytes | None:  # noqa: ARG002  what the compiled engine takes
        """Return a message as a payload; None where it is left to the exact way, as whatever is faulty is."""
        return None

    def is_plain(self, raw: bytes) -> bool:  # noqa: ARG002
        """Return whether a message is one that msgspec parses exactly, and that conforms to the schema or is noted."""
        return False

    def decode(self, payload: bytes) -> bytes | None:  # noqa: ARG002
        """Return a payload as text; None where it is left to the exact way."""
        return None

    def encode_text(self, text: bytes, position: int) -> tuple[bytes, int, int]:  # noqa: ARG002
        """Return the payloads of the lines of a text from a position on, their number, and the position behind them.

        It stops at a line that is left to the exact way, and at what no line end stands behind.
        """
        return b"", 0, position

    def decode_lines(self, raw: bytes, position: int, count: int, most: int) -> tuple[bytes, int, int]:  # noqa: ARG002
        """Return at most `count` payloads from a position on as lines, until they have `most` bytes.

        Also the position behind them, and their number; it stops at a payload that is left to the exact way.
        """
        return b"", position, 0

    def encode_column(
        self,
        column: Slices,  # noqa: ARG002
        first: int,
        base: int,  # noqa: ARG002
        most: int,  # noqa: ARG002
    ) -> tuple[bytes, bytes, int]:
        """Return the payloads of a column's texts (`Slices`) from an index on.

        With them come where each ends, and the index behind the last. The ends are counted on from `base`, as 32-bit
        integers. A null has no bytes. It stops at a value that is left to the exact way, as one is that ends behind
        `most`.
        """
        return b"", b"", first

    decode_column = encode_column


class ImageReader:
    """The reader of records whose columns and values are arrays beside each other, which leaves all of them."""

    __slots__ = ()

    def __init__(self, program: Program, *facts: Any) -> None:
        """Take what the compiled one is told of records, which nothing reads here."""

    def text(self, raw: bytes) -> bytes | None:  # noqa: ARG002
        """Return the JSON text of a record; None where it is left to the exact way, as whatever is faulty is."""
        return None

    def column(self, column: Slices, first: int, base: int, most: int) -> tuple[bytes, bytes, int]:  # noqa: ARG002
        """Return the texts of a column's records as `Engine.decode_column` does, without how values were sent."""
        return b"", b"", first


class ProtobufReader(ImageReader):
    """The reader of messages of protobuf, which leaves all of them; its `column` returns rows as lines."""

    __slots__ = ()


def split_column(column: Slices, first: int, base: int, most: int) -> tuple[bytes, bytes, int]:  # noqa: ARG001
    """Return the JSON objects of a column's texts as lines, as `Engine.decode_column` does; here it leaves all of them."""
    return b"", b"", first


def encode_places(fields: tuple[Any, ...], count: int) -> tuple[bytes, bytes]:  # noqa: ARG001
    """Return places as a column of the encoded fields of `source`: the bytes, and where each ends, from 0 on.

    `fields` are the topic, partition, offset, file and line, each a column of so many values, or None if no place has
    it: texts are `Slices`, and integers `Longs`. Here nothing reads them, so they are empty.
    """
    return b"", bytes(4 * (count + 1))


class EnvelopeEngine:
    """The engine of envelopes, which leaves all of them to their texts here."""

    __slots__ = ()

    def __init__(
        self,
        program: Program,
        source: Program,
        passages: array[int],
        labels: bytes,
        fixed: int,
        has_keys: bool,  # noqa: FBT001
    ) -> None:
        """Take the programs of both schemas, and what becomes of the fields, which nothing uses here."""

    def read_column(
        self,
        values: Slices,  # noqa: ARG002
        keys: Slices | None,  # noqa: ARG002
        topic: bytes,  # noqa: ARG002
        most: int,  # noqa: ARG002
    ) -> tuple[bytes, bytes, int]:
        """Return the payloads of a column of envelopes (`Slices`), where each ends, and the index behind the last.

        The ends are 32-bit integers. A null has no bytes. It stops at a value that is left to its text, or that ends
        behind `most` bytes. `keys` is a column of as many keys, or None if messages have none, and no topic either.
        """
        return b"", b"", 0


class RowEngine:
    """The engine of typed rows, which knows no pattern here."""

    __slots__ = ()

    def __init__(
        self,
        program: Program,
        words: tuple[bytes, ...] = (),
        zone: bytes = b"",
        is_ordered: bool = False,  # noqa: FBT001, FBT002
        of_changes: bool = False,  # noqa: FBT001, FBT002
        of_lines: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Take a program, the texts of values that the source did not give, and a zone, which nothing uses here."""

    def clear(self) -> None:
        """Forget all patterns."""

    def drop_last(self) -> None:
        """Take back the pattern that was added last: no message is of it."""

    def pattern(self, message: bytes) -> bytes | None:  # noqa: ARG002
        """Return what a message has in common with others of its pattern; None if it has none."""
        return None

    def has(self, fixed: bytes) -> bool:  # noqa: ARG002
        """Return whether a pattern was added, and not taken back."""
        return False

    def add(self, fixed: bytes, program: RowProgram) -> bool:  # noqa: ARG002
        """Add a pattern, whose messages are of one version of a table; return whether there is room for it."""
        return False

    def rows(self, message: bytes, place: bytes) -> list[Row] | None:  # noqa: ARG002
        """Return the rows of a message: pattern, key (None if there is none) and envelope of each; None if it is left.

        `place` are the encoded fields of `source` that say where the message arrived. If they are ordered, also the
        order value without a clock, and whether it lacks columns.
        """
        return None

    def survey(
        self,
        message: bytes,  # noqa: ARG002
        rules: dict[bytes, int],  # noqa: ARG002
    ) -> tuple[bytes, bytes | None, bytes | None] | None:
        """Return the pattern of a message, its position's numbers, and the names of the columns in its rows.

        `rules` has the rule of each pattern's numbers, which compare as bytes: a 1 and eight bytes for each; no bytes
        if there are none. Names and numbers are None of a pattern without a rule, or where they are left; so are the
        names if a value may be one that the source did not give. None for a message without a pattern.
        """
        return None

    def take_column(
        self,
        column: Slices,  # noqa: ARG002
        places: Slices | None,  # noqa: ARG002
        first: int,
        most: int,  # noqa: ARG002
        clock: Any = None,  # noqa: ARG002
        head: bytes = b"",  # noqa: ARG002
        is_read: bool = False,  # noqa: ARG002, FBT001, FBT002
    ) -> tuple[int, bool]:
        """Append the rows of the messages in a column (`Slices`) from an index on to those that were made.

        Return the index of the first message that is left, or the number of all. It stops, too, behind the message with
        which more than `most` bytes are made, and returns whether it did so with messages to come. `places` is None, or
        a column of the same length with encoded fields of `source` that say where each message arrived. A null has no
        rows. `clock` (`Clock`) has the times of lanes before, and gets those after. In brief texts, `MARK` stands for
        `head`. With `is_read`, the messages are what `EnvelopeEngine.read_column` made of envelopes with that head.
        """
        return first, False

    def taken(self) -> tuple[bytes, ...]:
        """Return the rows of columns that were made since the last time, as columns themselves.

        The index of the message and the number of the pattern of each row, as 32-bit integers; a bit for each row that
        has a key; where each key ends, from 0 on, and the keys; where each payload ends, and the payloads. If they are
        ordered, then where each order value ends, and the order values; a bit for each row that lacks columns.
        """
        return b"", b"", b"", bytes(4), b"", bytes(4), b""


def take_lines(
    _engine: RowEngine, _raw: bytes, position: int, _place: bytes, _number: int, _most: int
) -> tuple[tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes], int, int, bytes, bytes]:
    """Return the rows of lines, as `RowEngine.taken` does; how many were passed, and the position behind them.

    Behind these are the index of each line that was left, as a 32-bit integer, and its position, as one of 64 bits.
    `place` are the encoded fields of `source` that say where a line is, up to its number, counted from `number` on.
    """
    return (b"", b"", b"", bytes(4), b"", bytes(4), b""), 0, position, b"", b""


def grouped(
    _patterns: bytes, _ends: bytes, _payloads: bytes, _groups: bytes, _first: int, _last: int
) -> list[tuple[int, bytes, bytes]]:
    """Return the payloads of some rows in groups: the number of each, its payloads, and where each of them ends."""
    return []


class SurveyEngine(RowEngine):
    """The engine of surveys, to which no message is like another here."""

    __slots__ = ()

    def take_alike(self, column: Slices, places: Slices | None, first: int) -> int:  # noqa: ARG002
        """Survey the messages of a column (`Slices`) from an index on, and return that of the first which is left.

        `places` are as in `take_column`. A null is passed by.
        """
        return first

    def firsts(self) -> list[tuple[int, int]]:
        """Return the number of what messages have in common, and the index of their first, where this column has it.

        Each is told once.
        """
        return []

    def mixed(self, number: int) -> list[int]:  # noqa: ARG002
        """Return the indexes of messages that are not alike after all; from now on such messages are left."""
        return []


class FactEngine(SurveyEngine):
    """The engine of facts, to which no message is like another here."""

    __slots__ = ()

    def numbers(self) -> bytes:
        """Return the number of what each message of the column is like, as 32-bit integers; -1 for what was left.

        Here it is empty, as all are left.
        """
        return b""


class RowRules:
    """Rules for the rows of a version of a table, which nothing applies here."""

    __slots__ = ()

    def __init__(self, cells: list[CellRule], key: list[int], condition: RowTest | None) -> None:
        """Take the cells of rows, the places of those of the key, and the condition for rows, if there is one."""


def apply_rules(
    rules: list[RowRules | None],  # noqa: ARG001
    plans: bytes,  # noqa: ARG001
    operations: Slices,  # noqa: ARG001
    keys: Slices,  # noqa: ARG001
    payloads: Slices,  # noqa: ARG001
    lacks: bytes,
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Return the rows of a batch as they are written by the rules whose numbers are `plans`, None for no rules.

    `lacks` has a byte for each row, 1 if it lacks columns. Returned are a byte for each row: 0 if it is written, 1 if the
    exact way has to say, as here, 2 if it is left out; where each key ends, from 0 on, and the keys; the same of the
    payloads; and `lacks`.
    """
    ends = bytes(4 * len(lacks) + 4)
    return b"\1" * len(lacks), ends, b"", ends, b"", lacks
