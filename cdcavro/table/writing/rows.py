"""Rows of a table as Avro data: the cells of its columns, then misfits as text, then the names of absent columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.binary import pack_float
from cdcavro.errors import MisfitError, SchemaError, StructureError, shown
from cdcavro.exact.jsontext import escape, kind, render
from cdcavro.exact.jsonvalues import ABSENT
from cdcavro.exact.numbers import plain_text
from cdcavro.table.columns.readers import MISFIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cdcavro.avro.binary import Buffer
    from cdcavro.change.model import Row
    from cdcavro.table.columns.column_type import ColumnType

# Of all rows of a message, if it has several: a message of short rows may be about a table of many columns.
MAX_ABSENT: Final = 8 << 20
# Stands for the value of a column that newer rows no longer have.
_GONE: Final = object()
_LONG: Final = 0
_STRING: Final = 1
_BYTES: Final = 2
_DOUBLE: Final = 3
_SINGLE: Final = 4
_BOOLEAN: Final = 5
_KINDS: Final = {
    "int": _LONG,
    "long": _LONG,
    "string": _STRING,
    "bytes": _BYTES,
    "double": _DOUBLE,
    "float": _SINGLE,
    "boolean": _BOOLEAN,
}


class Cell:
    """A field of a row: a union of null and a primitive, with the reader of its column's values.

    Made from the column's name, its type (None for a column that newer rows no longer have), the name
    of the primitive, the primitive's index in the union, and the declared type.
    """

    __slots__ = ("_declared", "_kind", "name", "null", "read", "rule", "some")

    def __init__(self, name: str, type: ColumnType | None, primitive: str, place: int, declared: str = "") -> None:
        if primitive not in _KINDS:
            raise SchemaError(name, f"holds {primitive}, and a cell is a primitive")
        self.name = name
        # The reader of values, and its rule; None for a column that newer rows no longer have.
        self.read = None if type is None else type.read
        self.rule = None if type is None else type.rule
        self._kind = _KINDS[primitive]
        # The bytes before a value, and for null.
        self.some, self.null = place << 1, (1 - place) << 1
        self._declared = declared

    def plan(self) -> tuple[str, Callable[[Any], Any] | None, int, int, int]:
        """Return the cell as the engine takes it."""
        return self.name, self.read, self._kind, self.some, self.null

    def write_null(self, out: Buffer) -> None:
        """Append null."""
        out.append(self.null)

    def write(self, out: Buffer, value: Any) -> bool:
        """Append a value, or null for one that the type cannot carry; return whether it was appended."""
        datum = None if value is None or self.read is None else self.read(value)
        if datum is None or datum is MISFIT:
            out.append(self.null)
            return datum is None
        out.append(self.some)
        if self._kind == _LONG:
            out.write_long(datum)
        elif self._kind == _STRING:
            out.write_string(datum)
        elif self._kind == _BYTES:
            out.write_long(len(datum))
            out.write_raw(datum)
        elif self._kind == _DOUBLE:
            out.write_double(datum)
        elif self._kind == _SINGLE:
            out.write_raw(pack_float(datum))
        else:
            out.append(datum)
        return True

    def misfit(self, value: Any, pointer: str, format: str | None) -> MisfitError:
        """Return the error for a value that the type cannot carry; `pointer` is the JSON pointer to the row."""
        got = f"{kind(value)} {shown(text_of(value))}"
        return MisfitError(self._declared, got, pointer=f"{pointer}/{escape(self.name)}", format=format)


class Written:
    """The values of a written row and where its cells start, for another row with the same values to copy."""

    __slots__ = ("starts", "values")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.values: list[Any] = []


class RowWriter:
    """Writes the rows of one version of a table, as one source sends them.

    Made from the cells in the order of the fields; the names of the version's columns; the label of
    the version and the format, for errors; and `count`, which is told the columns of values that
    their types cannot carry. With `is_strict`, such values are errors.
    """

    __slots__ = ("_cells", "_columns", "_count", "_format", "_is_strict", "_label")

    def __init__(
        self,
        cells: Sequence[Cell],
        columns: frozenset[str | None],
        label: str,
        format: str | None,
        count: Callable[[Iterable[str]], object],
        *,
        is_strict: bool,
    ) -> None:
        self._cells = tuple(cells)
        self._columns = columns
        self._label = label
        self._format = format
        self._count = count
        self._is_strict = is_strict

    def write(self, out: Buffer, image: Row, pointer: str, last: Written | None = None, *, rows: int = 1) -> Written:
        """Append a row, of so many `rows` of a message, and return its values and where its cells start.

        `last` is an earlier row of the same table in the same payload: most values of an update are the
        same objects in both of its rows, and their bytes are copied. Raises `StructureError` for an
        unknown column, and for a row that lacks so much that as many of its kind would be out of proportion; `MisfitError`.
        """
        written, count = Written(), 0
        absent: list[str] = []
        misfits: dict[str, str] = {}
        cells = image if type(image) is dict else dict(image)
        for i, cell in enumerate(self._cells):
            written.starts.append(len(out))
            value = _GONE if cell.read is None else cells.get(cell.name, ABSENT)
            if value is _GONE or value is ABSENT:
                cell.write_null(out)
                if value is ABSENT:
                    absent.append(cell.name)
            else:
                count += 1
                if last is not None and last.values[i] is value:
                    out.write_again(last.starts[i], last.starts[i + 1])
                elif not cell.write(out, value):
                    if self._is_strict:
                        raise cell.misfit(value, pointer, self._format)
                    misfits[cell.name] = text_of(value)
                    value = MISFIT
            written.values.append(value)
        written.starts.append(len(out))
        if count != len(cells):
            raise self._unknown(image, pointer)
        if misfits:
            self._count(misfits.keys())
        write_texts(out, misfits)
        self._write_absent(out, absent, rows)
        return written

    def check(self, names: Sequence[str], pointer: str) -> None:
        """Raise `StructureError` unless the version has all these columns; `pointer` is the JSON pointer to the row."""
        if not self._columns.issuperset(names):
            raise self._unknown(names, pointer)

    def _write_absent(self, out: Buffer, names: list[str], rows: int) -> None:
        size = sum([1 + len(name.encode()) for name in names]) * rows if rows > 1 else 0
        if size > MAX_ABSENT:
            expected = f"at most {MAX_ABSENT} bytes of names of absent columns in {rows} rows"
            raise StructureError(expected, str(size), format=self._format)
        if names:
            out.write_long(len(names))
            for name in names:
                out.write_string(name)
        out.append(0)

    def _unknown(self, names: Iterable[str], pointer: str) -> StructureError:
        name = next(name for name in names if name not in self._columns)
        expected = f"a column of {self._label}"
        return StructureError(expected, "none", pointer=f"{pointer}/{escape(name)}", format=self._format)


def write_texts(out: Buffer, texts: dict[str, str]) -> None:
    """Append an Avro map of strings."""
    if texts:
        out.write_long(len(texts))
        for name, text in texts.items():
            out.write_string(name)
            out.write_string(text)
    out.append(0)


def text_of(value: Any) -> str:
    """Return the text of a value that a type cannot carry: a string as it is, anything else as JSON."""
    if type(value) is str:
        return value
    return plain_text(value) if type(value) not in (dict, list, bool) else render(value).decode()
