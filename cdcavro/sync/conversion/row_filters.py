"""Filters of rows in payloads: a row is kept or left out by a condition on a column, or by a function of its values.

An update may move a row into those that are kept, or out of them: then it becomes an insert, or a delete. `ruled_rows`
takes a batch of rows through the filters and masks of their tables: in the engine, and the exact way where that leaves
a row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from cdcavro.engine.machine import RowRules, apply_rules
from cdcavro.engine.program import RULE_TESTS, RowTest
from cdcavro.errors import StructureError, plain
from cdcavro.sync.row_cells import RowCell, read_long, read_texts
from cdcavro.table.table_schema import SOURCE_FIELDS
from cdcavro.table.writing.table_writer import WHOLE_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from cdcavro.sync.row_cells import Condition

    # A cell of a row, and where it begins and ends.
    Span = tuple[RowCell, int, int]

RowFunction = Callable[[Mapping[str, Any]], bool]
"""A function that says of a row, by the values of its columns, whether it is written."""

# What becomes of a row in the engine.
_WRITTEN, _EXACT = 0, 1
# How many rows Python writes in less time than a batch for the engine takes: 10 µs each, and 150.
_FEW: Final = 16
# Where the row after a change stands in it.
_AFTER: Final = "/after"


class UnknownValueError(StructureError):
    """A value by which a row is kept or left out, and which the row does not have."""


class RowImage(Mapping[str, Any]):
    """The values of a row before or after a change, by the names of their columns: what a function of a rule is given.

    A column is in it if the row says what its value is, or null. Names match regardless of case, unless one has the
    spelling. Raises `UnknownValueError` for a column of the table whose value the row does not say, also by `get`, and
    `KeyError` for what is no column of the table.
    """

    def __init__(self, raw: bytes, spans: Mapping[str, Span], table: str, pointer: str) -> None:
        self._raw, self._spans, self._table, self.pointer = raw, spans, table, pointer
        # Whose values are texts, as these are named, and which columns the row lacks.
        self._misfits: Collection[str] = ()
        self._absent: Collection[str] = ()

    def miss(self, misfits: Collection[str], absent: Collection[str]) -> None:
        """Note which columns have values that their types cannot carry, as texts are named, and which the row lacks."""
        self._misfits, self._absent = misfits, absent

    def text(self, column: str) -> bytes | None:
        """Return the text of a value, as `value_text` has it; None for null."""
        cell, first, end = self._span(column)
        return None if self._raw[first] == cell.null else cell.read(self._raw[first + 1 : end])

    def unknown(self, column: str, got: str) -> UnknownValueError:
        """Return the error for a column whose value is not known."""
        needed = (
            f"a value of the column {plain(column)} in a row of {self._table}, by which where decides ({WHOLE_ROWS})"
        )
        return UnknownValueError(needed, got, pointer=self.pointer)

    def __getitem__(self, column: str) -> Any:
        cell, first, end = self._span(column)
        if self._raw[first] == cell.null:
            return None
        try:
            return cell.value(self._raw[first + 1 : end])
        except OverflowError:
            raise self.unknown(cell.column, "a year that Python does not have") from None

    def __contains__(self, column: object) -> bool:
        span = self._spans.get(self._name(column))
        return span is not None and self._got(span) is None

    def __iter__(self) -> Iterator[str]:
        return (column for column, span in self._spans.items() if self._got(span) is None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self)})"

    def _span(self, column: str) -> Span:
        span = self._spans[self._name(column)]
        got = self._got(span)
        if got is not None:
            raise self.unknown(span[0].column, got)
        return span

    def _name(self, column: object) -> str:
        if column in self._spans or not isinstance(column, str):
            return cast("str", column)
        return next((name for name in self._spans if name.casefold() == column.casefold()), column)

    def _got(self, span: Span) -> str | None:
        """Return what the row has instead of a value, or null; None if it has that."""
        cell, first, _ = span
        if self._raw[first] != cell.null:
            return None
        if cell.column in self._absent:
            return "a row without it"
        return "one that its type cannot carry" if cell.text_name in self._misfits else None


class RowState(NamedTuple):
    """What is known of a row before or after a change."""

    # Where its bytes begin and end; the same if there is no such row.
    start: int
    end: int
    # Whether it is to be kept; None if the row does not say so, and why.
    holds: bool | None
    error: StructureError | None = None
    # Whether it lacks columns.
    lacks: bool = False


class RowFilter:
    """Leaves out rows by what decides for them; an update may move a row into those that are kept, or out of them.

    `table` is the name of the table, for errors, and `cells` are those of a version's rows.
    """

    def __init__(self, decision: Decision, table: str, cells: Sequence[RowCell]) -> None:
        self._decision, self._table, self._cells = decision, table, cells

    @property
    def test(self) -> RowTest:
        """What the engine decides by; it leaves rows to the exact way if it cannot."""
        return self._decision.test(self._cells) or RowTest(RULE_TESTS.index("unknown"))

    def row(self, operation: str, payload: bytes, *, lacks: bool) -> tuple[str, bytes, bool] | None:
        """Return the operation of a row, its envelope, and whether it lacks columns; None for one that is left out.

        Raises `StructureError`, which shows no value, for a row that does not say enough.
        """
        if operation not in "crud":
            return operation, payload, lacks
        before, at = self._state(payload, 0, "/before")
        after, at = self._state(payload, at, _AFTER)
        if operation == "d":
            return None if before.holds is False else (operation, payload, lacks)
        if after.holds is None:
            raise after.error or StructureError(f"a row of {self._table} after a change", "none", pointer=_AFTER)
        if operation != "u":
            return (operation, payload, lacks) if after.holds else None
        if after.holds and before.holds:
            return operation, payload, lacks
        if after.holds and after.lacks:
            expected = (
                f"a whole row of {self._table}, as an update may bring it in by {self._decision.name} ({WHOLE_ROWS})"
            )
            raise StructureError(expected, "one that lacks columns", pointer=_AFTER)
        if after.holds and before.holds is None:
            return operation, payload, lacks
        if after.holds:
            return (
                "c",
                b"".join([b"\0\2", payload[after.start : after.end], _with_operation(payload[at:], b"c")]),
                False,
            )
        if before.holds is False:
            return None
        # Of the row before, nothing else than its key has to be known.
        gone = before if before.end > before.start else after
        return "d", b"".join([b"\2", payload[gone.start : gone.end], b"\0", _with_operation(payload[at:], b"d")]), False

    def _state(self, raw: bytes, at: int, pointer: str) -> tuple[RowState, int]:
        """Return the state of a row, and where its bytes end."""
        if raw[at] == 0:
            return RowState(at + 1, at + 1, None), at + 1
        start = at = at + 1
        spans: dict[str, Span] = {}
        for cell in self._cells:
            first = at
            at = cell.end(raw, at)
            if cell.is_written:
                spans[cell.column] = cell, first, at
        misfits, at = read_texts(raw, at, 2)
        absent, at = read_texts(raw, at, 1)
        image = RowImage(raw, spans, self._table, pointer)
        image.miss(misfits[::2], absent)
        try:
            return RowState(start, at, self._decision.holds(image), lacks=bool(absent)), at
        except UnknownValueError as error:
            return RowState(start, at, None, error, lacks=bool(absent)), at


class Decision(Protocol):
    """Decides which rows of a version of a table are kept."""

    @property
    def name(self) -> str:
        """What decides, in errors."""

    def holds(self, image: RowImage) -> bool:
        """Return whether a row is kept.

        Raises `UnknownValueError` if the row does not say so, and another `StructureError` if its message is to be rejected
        in any case.
        """

    def test(self, cells: Sequence[RowCell]) -> RowTest | None:
        """Return what the engine decides by, as `cells` are those of a row; None if it cannot."""


class ColumnDecision:
    """Keeps rows for which a condition holds; made from the cell of its column, None if the version has none."""

    def __init__(self, condition: Condition, table: str, cell: RowCell | None) -> None:
        self._condition, self._table, self._cell = condition, table, cell
        self._mismatch = None if cell is None else condition.mismatch(cell.kind)

    @property
    def name(self) -> str:
        """What decides, in errors."""
        return f"where on {plain(self._condition.column)}"

    def holds(self, image: RowImage) -> bool:
        """Return whether a row is kept. Raises `UnknownValueError`."""
        column = plain(self._condition.column)
        if self._cell is None:
            expected = f"the column {column} in {self._table}, by which where decides"
            raise UnknownValueError(expected, "none", pointer=_AFTER)
        if self._mismatch is not None:
            expected = f"a column {column} of {self._table} that where can compare: {self._mismatch}"
            raise UnknownValueError(expected, f"one of type {self._cell.kind}", pointer=_AFTER)
        return self._condition.holds(image.text(self._cell.column))

    def test(self, cells: Sequence[RowCell]) -> RowTest | None:
        """Return what the engine decides by; None if no row can be decided."""
        if self._cell is None or self._mismatch is not None:
            return None
        return self._cell.test(self._condition, cells.index(self._cell))


class FunctionDecision:
    """Keeps rows for which a function returns True; `label` is the function's name."""

    def __init__(self, function: RowFunction, label: str, table: str) -> None:
        self._function, self._label, self._table = function, label, table

    @property
    def name(self) -> str:
        """What decides, in errors."""
        return f"the function {self._label}"

    def holds(self, image: RowImage) -> bool:
        """Return whether a row is kept. Raises `UnknownValueError`, and `StructureError` for what the function raises."""
        try:
            found: object = self._function(image)
        except UnknownValueError:
            raise
        except Exception as error:  # noqa: BLE001  whatever a function of the user's raises is a reject
            raise self._error(image, f"the exception {plain(type(error).__name__)}") from None
        if not isinstance(found, bool):
            raise self._error(image, f"a value of type {plain(type(found).__name__)}")
        return found

    def test(self, cells: Sequence[RowCell]) -> None:
        """Return None: the engine calls no function."""

    def _error(self, image: RowImage, got: str) -> StructureError:
        expected = f"True or False of {self.name}, by which where decides for a row of {self._table}"
        return StructureError(expected, got, pointer=image.pointer)


def _with_operation(tail: bytes, operation: bytes) -> bytes:
    """Return what stands behind the rows of an envelope, with another operation."""
    at = 0
    for _, declared, _ in SOURCE_FIELDS:
        is_there, at = tail[at] != 0, at + 1
        if not is_there:
            continue
        size, at = read_long(tail, at)
        if declared == "string":
            at += size
        elif isinstance(declared, dict):
            while size:
                for _ in range(size):
                    _, at = read_long(tail, at)
                size, at = read_long(tail, at)
    size, end = read_long(tail, at)
    return b"".join([tail[:at], bytes([len(operation) << 1]), operation, tail[end + size :]])


class RuledVersion(Protocol):
    """What becomes of the rows of a version of a table, in the engine and the exact way."""

    rules: RowRules

    def row(
        self, operation: str, key: bytes | None, payload: bytes, *, lacks: bool
    ) -> tuple[str, bytes | None, bytes, bool] | None:
        """Return the operation, the key and the envelope of a row as they are written, and whether it lacks columns.

        Return None for a row that is left out. Raises `StructureError` for one that does not say enough.
        """


def versions_of(rows: pa.RecordBatch) -> tuple[list[tuple[int, int]], pa.Array]:
    """Return the numbers of tables and versions that rows have, in a batch of `placing.ROWS`, and the place of each row's."""
    import pyarrow as pa  # noqa: PLC0415  a configuration is read where it is not installed, too
    import pyarrow.compute as pc  # noqa: PLC0415

    number, version = (rows.column(name).cast(pa.int64()) for name in ("number", "version"))
    pairs = pc.add(pc.multiply(number, 1 << 32), version).dictionary_encode()
    return [divmod(one, 1 << 32) for one in pairs.dictionary.to_pylist()], pairs.indices


def ruled_rows(
    rows: pa.RecordBatch, versions: Sequence[RuledVersion | None], places: pa.Array
) -> tuple[pa.RecordBatch, dict[int, StructureError]]:
    """Return rows, in a batch of `placing.ROWS`, as they are written, and the errors of messages by their indexes.

    `places` has the place of each row's version among `versions`, which is None for rows that are written as they are.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    if len(rows) < _FEW:
        exact, _, errors = exact_rows(rows, [versions[i] for i in places.to_pylist()])
        return exact, errors
    made, outcomes = _engine_rows(rows, versions, places)
    is_written, is_left = pc.equal(outcomes, _WRITTEN), pc.equal(outcomes, _EXACT)
    if not pc.any(is_left).as_py():
        return (made if pc.all(is_written).as_py() else made.filter(is_written)), {}
    left = pc.indices_nonzero(is_left)
    exact, kept, errors = exact_rows(rows.take(left), [versions[i] for i in places.take(left).to_pylist()])
    parts = pa.Table.from_batches([made.filter(is_written), exact])
    numbers = pa.chunked_array([pc.indices_nonzero(is_written), left.take(kept)])
    (written,) = parts.take(pc.sort_indices(numbers)).combine_chunks().to_batches() or [exact]
    return written, errors


def _engine_rows(
    rows: pa.RecordBatch, versions: Sequence[RuledVersion | None], places: pa.Array
) -> tuple[pa.RecordBatch, pa.Array]:
    """Return rows as the engine writes them, and what becomes of each."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    from cdcavro.arrow.arrays import slices_of  # noqa: PLC0415  it imports pyarrow

    key, lacks = rows.column("key"), rows.column("lacks").cast(pa.uint8())
    outcomes, *made, lacking = apply_rules(
        [None if one is None else one.rules for one in versions],
        _values(places.cast(pa.int32()), 4),
        slices_of(rows.column("operation")),
        slices_of(key),
        slices_of(rows.column("payload")),
        _values(lacks, 1),
    )
    key_ends, keys, ends, payloads = map(pa.py_buffer, made)
    validity = pa.py_buffer(slices_of(key).bits()) if key.null_count else None
    columns = {
        "key": pa.Array.from_buffers(pa.binary(), len(rows), [validity, key_ends, keys]),
        "payload": pa.Array.from_buffers(pa.binary(), len(rows), [None, ends, payloads]),
        "lacks": pc.cast(pa.Array.from_buffers(pa.uint8(), len(rows), [None, pa.py_buffer(lacking)]), pa.bool_()),
    }
    written = [columns.get(name, rows.column(name)) for name in rows.schema.names]
    outcome = pa.Array.from_buffers(pa.uint8(), len(rows), [None, pa.py_buffer(outcomes)])
    return pa.RecordBatch.from_arrays(written, schema=rows.schema), outcome


def _values(numbers: pa.Array, width: int) -> bytes:
    """Return the bytes of numbers of which none is null, each of a width."""
    return memoryview(numbers.buffers()[1])[numbers.offset * width : (numbers.offset + len(numbers)) * width].tobytes()


def exact_rows(
    rows: pa.RecordBatch, versions: Sequence[RuledVersion | None]
) -> tuple[pa.RecordBatch, pa.Array, dict[int, StructureError]]:
    """Return rows, each of the version at its place, as they are written by Python alone, and the places of these.

    Also return the errors of messages by their indexes.
    """
    import pyarrow as pa  # noqa: PLC0415

    names = ("operation", "key", "payload", "lacks")
    made, kept, errors = list[tuple[Any, ...]](), list[int](), dict[int, StructureError]()
    columns = [rows.column(name).to_pylist() for name in ("message", *names)]
    for i, (message, *facts) in enumerate(zip(*columns, strict=True)):
        try:
            row = _exact_row(versions[i], *facts)
        except StructureError as error:
            errors.setdefault(message, error)
            continue
        if row is not None:
            made.append(row)
            kept.append(i)
    places = pa.array(kept, pa.int64())
    rows = rows.take(places)
    for name, values in zip(names, zip(*made, strict=True) if made else (), strict=bool(made)):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), pa.array(values, rows.schema.field(at).type))
    return rows, places, errors


def _exact_row(
    version: RuledVersion | None,
    operation: str,
    key: bytes | None,
    payload: bytes,
    lacks: bool,  # noqa: FBT001  as the row has it
) -> tuple[str, bytes | None, bytes, bool] | None:
    if version is None or not payload:
        return operation, key, payload, lacks
    return version.row(operation, key, payload, lacks=lacks)
