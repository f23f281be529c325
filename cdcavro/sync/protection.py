"""Protection of personal data: columns of rows that are left out or masked, before anything of a row is written.

A task takes the payloads of typed rows apart as soon as they are made, and whoever writes rows gets tables whose
versions have the same columns: so no lake, changelog, topic, file or registry, no row that waits and no report has
anything else. A column is found by its name, or by that which it had before a statement renamed it, and a table by the
first of its names that a rule fits. What may be a protected column under another name stops the pipeline.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from struct import unpack
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cdcavro.avro.binary import Buffer
from cdcavro.avro.defaults import encoded_defaults
from cdcavro.errors import JobError, plain, shown
from cdcavro.sync.outputs.reject_places import GOT, SHOWN_VALUE
from cdcavro.table.table_schema import (
    ATTRIBUTE,
    TableSchema,
    as_schema,
    attributes_of,
    avro_of,
    column_fields,
    column_name,
    field_with_type,
    is_column,
    without_attributes,
)
from cdcavro.table.writing.table_writer import write_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table

    # What becomes of the fields of a version, by their names.
    Actions = Mapping[str, "Action"]

SHA256: Final = "sha256"
HMAC: Final = "hmac-sha256"
METHODS: Final = (SHA256, HMAC)
KEEP, OMIT = "keep", "omit"
REJECTS_RAW: Final = (KEEP, OMIT)
HIDDEN: Final = "…"
_QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_VALUE: Final = re.compile(SHOWN_VALUE)
_DATE: Final = datetime(1970, 1, 1, tzinfo=UTC)
_VARINT, _SIZED = -1, -2
# How many bytes a cell of an Avro type takes, or how that is found out.
_SIZES: Final = {
    "boolean": 1,
    "int": _VARINT,
    "long": _VARINT,
    "float": 4,
    "double": 8,
    "bytes": _SIZED,
    "string": _SIZED,
}
_NOTHING: Final = b"\0"
# What the last byte of a long is less than.
_LONG: Final = 0x80


class Constant(Struct, frozen=True, forbid_unknown_fields=True):
    """A mask that gives each value the same text.

    * `constant` (str): the text.
    """

    constant: str


class Action(NamedTuple):
    """What becomes of a column: it is left out, or its values are replaced by texts."""

    # How, in words.
    label: str
    # What makes the text that replaces a value's; None for a column that is left out.
    mask: Callable[[bytes], bytes] | None
    # Whether different values have different texts.
    is_distinct: bool = True


_LEFT_OUT: Final = Action("left out", None)


def fits(table: TableName, patterns: Sequence[str]) -> bool:
    """Return whether one of these patterns fits the name of a table, with as many parts as the pattern has."""
    parts = [part for part in (table.database, table.schema, table.table) if part is not None]
    names = [".".join(parts[-count:]) for count in range(1, len(parts) + 1)]
    for pattern in patterns:
        dots = pattern.count(".")
        # A name may have dots of its own, and a star must not reach from the database into the table.
        alike = {names[min(dots, len(names) - 1)], *[name for name in names if name.count(".") == dots]}
        if any(fnmatchcase(name, pattern) for name in alike):
            return True
    return False


class RowRule(Struct, frozen=True, forbid_unknown_fields=True):
    """What is written of the rows of tables; of several, the first whose pattern fits a table counts.

    Names of columns match regardless of case. Raises `ValueError`.

    * `match`: a pattern of the names of tables, as in `include` of `[tables]`.
    * `leave_out`: the names of columns that are written nowhere.
    * `mask`: how the values of columns are replaced, by their names: by the digest `sha256` or `hmac-sha256`, or by a
      constant.
    * `plain`: patterns of the names of columns that may be written as they are, where nothing says that a new one is
      not a protected one under another name.
    * `salt`: what stands before a value that `sha256` digests.
    * `secret`: the key of `hmac-sha256`.
    """

    match: str
    leave_out: tuple[str, ...] = ()
    mask: dict[str, str | Constant] = {}
    plain: tuple[str, ...] = ()
    salt: str | None = None
    secret: str | None = None

    def __repr__(self) -> str:
        return f"RowRule(match={self.match!r}, leave_out={self.leave_out!r}, mask={self.mask!r}, ...)"

    def __post_init__(self) -> None:
        """Check what does not depend on a table."""
        if not self.match:
            raise ValueError("match is a pattern of the names of tables, not an empty one")
        if not (self.leave_out or self.mask):
            raise ValueError("a rule for tables has leave_out or mask, or it says nothing")
        names = [name.casefold() for name in (*self.leave_out, *self.mask)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"each column is left out or masked once, and {shown(twice)} is not")
        for name, method in self.mask.items():
            if not isinstance(method, Constant) and method not in METHODS:
                near = get_close_matches(str(method), METHODS, n=1)
                known = (
                    f"did you mean {near[0]}?" if near else f'there are {", ".join(METHODS)} and {{ constant = "…" }}'
                )
                raise ValueError(f"the mask of {shown(name)} is {shown(str(method))}, which is none: {known}")
        stated = (("salt", SHA256, self.salt), ("secret", HMAC, self.secret))
        for setting, method, value in stated:
            if method in self.mask.values() and not value:
                raise ValueError(f'a mask by {method} needs a {setting}, such as {setting} = "${{VARIABLE}}"')
        for setting, method, value in stated:
            if method not in self.mask.values() and value is not None:
                raise ValueError(f"a {setting} is for a mask by {method}, and there is none")

    def action_of(self, column: str) -> Action | None:
        """Return what becomes of a column of this name; None if it is not protected."""
        name = column.casefold()
        if name in [one.casefold() for one in self.leave_out]:
            return _LEFT_OUT
        return next((self._mask(method) for own, method in self.mask.items() if own.casefold() == name), None)

    def is_plain(self, column: str) -> bool:
        """Return whether a column of this name is written as it is, unless it is named as a protected one."""
        return any(fnmatchcase(column, one) for one in self.plain)

    def actions(self, schema: TableSchema, known: Actions) -> dict[str, Action]:
        """Return what becomes of the fields of a version; `known` says it of the fields of other versions."""
        found: dict[str, Action] = {}
        columns: dict[str, Action] = {}
        fields = [(one, column_name(one)) for one in column_fields(schema.record)]
        for one, column in fields:
            action = self.action_of(column)
            if action is None and not self.is_plain(column):
                # A field has the names that it had before a statement renamed it, and no other field gets these.
                names = (one["name"], *one.get("aliases", ()))
                action = next((known[name] for name in names if name in known), None)
            if action is not None:
                found[one["name"]] = columns[column] = action
        # A field that took over from another one has the same column.
        return found | {one["name"]: columns[column] for one, column in fields if column in columns}

    def _mask(self, method: str | Constant) -> Action:
        if isinstance(method, Constant):
            return Action("a constant", partial(_constant, method.constant.encode()), is_distinct=False)
        if method == SHA256:
            return Action(SHA256, partial(_sha256, (self.salt or "").encode()))
        return Action(HMAC, partial(_hmac, (self.secret or "").encode()))


def _constant(text: bytes, _: bytes) -> bytes:
    return text


def _sha256(salt: bytes, text: bytes) -> bytes:
    return hashlib.sha256(salt + text).hexdigest().encode()


def _hmac(secret: bytes, text: bytes) -> bytes:
    return hmac.digest(secret, text, "sha256").hex().encode()


class Protection:
    """What is written of the rows of a pipeline's tables: the first of `rules` (`RowRule`) that fits a table counts."""

    def __init__(self, rules: Sequence[RowRule] = ()) -> None:
        self.rules = tuple(rules)
        self._tables: dict[int, tuple[Any, Table, list[_Version | None]]] = {}

    def __reduce__(self) -> tuple[type[Protection], tuple[tuple[RowRule, ...]]]:
        """Pickle the rules alone."""
        return Protection, (self.rules,)

    @property
    def layout(self) -> str:
        """A text that differs between rules by which rows are not written alike; it has no secret."""
        stated = [[rule.match, sorted(rule.leave_out), sorted(rule.mask), sorted(rule.plain)] for rule in self.rules]
        return hashlib.sha256(json.dumps(stated).encode()).hexdigest() if stated else ""

    def public(self, table: Table) -> Table:
        """Return a table as those see it who write rows. Raises `JobError` if its rows may not be written."""
        return self._known(table)[0] if self.rules else table

    def rows(self, rows: pa.RecordBatch, tables: Sequence[Table]) -> pa.RecordBatch:
        """Return rows, in a batch of `placing.ROWS`, as they may be written. Raises `JobError` as `public` does."""
        numbers = pc.unique(rows.column("number")).to_pylist() if self.rules else ()
        versions = {number: found for number in numbers if any(found := self._known(tables[number])[1])}
        if not versions:
            return rows
        names = ("number", "version", "key", "payload", "lacks")
        made = [
            _protected_row(versions[number][version - 1] if number in versions else None, *facts)
            for number, version, *facts in zip(*[rows.column(name).to_pylist() for name in names], strict=True)
        ]
        for name, values in zip(names[2:], zip(*made, strict=True), strict=True):
            at = rows.schema.get_field_index(name)
            rows = rows.set_column(at, rows.schema.field(at), pa.array(values, rows.schema.field(at).type))
        return rows

    def outcomes(self, rows: Sequence[dict[str, Any]], *, has_raw: bool) -> list[dict[str, Any]]:
        """Return outcomes of messages that show no value; without `has_raw`, no bytes of messages either."""
        if not self.rules and has_raw:
            return list(rows)
        omitted = {} if has_raw else {"raw": None, "record_key": None}
        return [
            {**row, **omitted, "reason": without_values(row["reason"]) if self.rules else row["reason"]}
            if "reason" in row
            else row
            for row in rows
        ]

    def _known(self, table: Table) -> tuple[Table, list[_Version | None]]:
        """Return what becomes of a table and of its versions."""
        stamp = (len(table.versions), table.schema, table.is_stated, table.unexplained.size)
        known = self._tables.get(table.number)
        if known is None or known[0] != stamp:
            versions = self._versions(table, () if known is None else known[2])
            public = [one.public if one else own for one, own in zip(versions, table.versions, strict=True)]
            own = replace(table, versions=public) if any(versions) else table
            self._tables[table.number] = known = (stamp, own, versions)
        return known[1], known[2]

    def _versions(self, table: Table, made: Sequence[_Version | None]) -> list[_Version | None]:
        """Return the versions of a table; `made` are those that were made before some of them were known."""
        rules = [
            next((one for one in self.rules if fits(schema.table, (one.match,))), None) for schema in table.versions
        ]
        first = next((i for i, rule in enumerate(rules) if rule is not None), len(rules))
        if first == len(rules):
            return [None] * first
        rule, known = cast("RowRule", rules[first]), dict[str, Action]()
        for schema in table.versions[first:]:
            known |= rule.actions(schema, known)
        _check_origins(table, rule, known)
        found: list[_Version | None] = [None] * first
        for i, schema in enumerate(table.versions[first:], first):
            # A late statement may have said what a column of an older version was before.
            own, old = rule.actions(schema, known), made[i] if i < len(made) else None
            is_same = old is not None and old.is_of(schema, own)
            found.append(old if is_same else _Version(schema, own) if own else None)
        return found


def without_values(sentence: str | None) -> str | None:
    """Return a sentence on a message without any value that it may quote, and without names.

    >>> without_values("expected an integer, got 'x1' at 7")
    'expected an integer, got … at …'
    """
    if sentence is None:
        return None
    before, got, behind = sentence.partition(GOT)
    return _QUOTED.sub(HIDDEN, before) + got + _VALUE.sub(HIDDEN, behind)


def _label(name: TableName) -> str:
    return ".".join(plain(part) for part in (name.database, name.schema, name.table) if part)


def _check_origins(table: Table, rule: RowRule, known: Actions) -> None:
    """Raise `JobError` if a column may be a protected one under another name, as no statement says where it came from.

    A list of columns says that one is gone and another is there; a message that states no columns says even less.
    """
    new = table.unexplained.added - table.versions[0].names
    new = {name for name in new if rule.action_of(name) is None and not rule.is_plain(name)}
    lost = table.unexplained.dropped if new else {}
    gone = [name for name, one in lost.items() if rule.action_of(name) is not None or one["name"] in known]
    if table.is_stated:
        versions = [schema.names for schema in table.versions]
        new = {name for name in new if any(not any({name, old} <= names for names in versions) for old in gone)}
    if new:
        when = f"after {shown(min(gone))} was gone" if gone else "in a message that states no columns"
        raise JobError(
            f"{_label(table.schema.table)} has the new column {shown(min(new))} {when}, and no statement says that it is"
            " not a protected column under another name: nothing is written. Name it in leave_out or mask, or in plain,"
            f' of match = "{rule.match}"'
        )


class _Version:
    """A version of a table some of whose columns are protected: its schema as it is written, and its payloads.

    Raises `JobError` if its key is left out, or has no distinct values any more.
    """

    def __init__(self, schema: TableSchema, actions: Actions) -> None:
        _check_key(schema, actions)
        self._schema, self._labels = schema, {name: action.label for name, action in actions.items()}
        self._cells: list[_Cell] = []
        record, fields = schema.record, []
        for i, one in enumerate(record["fields"]):
            if not is_column(one):
                fields.append(one)
                continue
            action = actions.get(one["name"])
            made = one if action is None else None if action.mask is None else _masked_field(schema, i, action)
            fields += [] if made is None else [made]
            self._cells.append(_Cell(one, action, made))
        self.public = TableSchema(as_schema(record | {"fields": fields}))
        written = {cell.column: cell for cell in self._cells if cell.is_written}
        self._key = [written[name] for name in schema.key_names] if schema.key is not None else []

    def is_of(self, schema: TableSchema, actions: Actions) -> bool:
        """Return whether this is what becomes of a version whose fields are protected so."""
        return self._schema == schema and self._labels == {name: action.label for name, action in actions.items()}

    def key(self, payload: bytes) -> bytes:
        """Return a key as it is written."""
        out: list[bytes] = []
        at = _put_cells(payload, 0, self._key, out)
        return b"".join([*out, payload[at:]])

    def envelope(self, payload: bytes) -> tuple[bytes, bool]:
        """Return an envelope as it is written, and whether the row after the change lacks columns."""
        out: list[bytes] = []
        at, lacks = 0, False
        for _ in ("before", "after"):
            is_there = payload[at] != 0
            out.append(payload[at : at + 1])
            at, lacks = at + 1, False
            if is_there:
                at = _put_cells(payload, at, self._cells, out)
                at, lacks = _put_absent(payload, at, self._cells, out)
        return b"".join([*out, payload[at:]]), lacks


def _check_key(schema: TableSchema, actions: Actions) -> None:
    for one in column_fields(schema.record):
        action = actions.get(one["name"])
        if action is None or column_name(one) not in schema.key_names:
            continue
        if action.mask is None or not action.is_distinct:
            how = "left out" if action.mask is None else "masked by a constant"
            raise JobError(
                f"{shown(column_name(one))} is a column of the key of {_label(schema.table)} and cannot be {how}, as rows"
                f" could not be told apart: mask it by {SHA256} or {HMAC}"
            )


def _masked_field(schema: TableSchema, index: int, action: Action) -> dict[str, Any]:
    """Return the field of a masked column: a text, which is masked in rows older than the column, too."""
    one = schema.record["fields"][index]
    fill = None
    if one.get("default") is not None and action.mask is not None:
        declared: Any = schema.row.root
        raw = encoded_defaults(declared, (declared.fields[index],))[index]
        fill = action.mask(_text(avro_of(one))(raw[1:])).decode()
    kept = {key: value for key, value in attributes_of(one).items() if key in ("column", "since", "until")}
    own = {key: value for key, value in one.items() if key in ("name", "aliases")}
    return field_with_type(own | {ATTRIBUTE: kept | {"note": f"masked by {action.label}"}}, "string", fill)


class _Cell:
    """A field of a row: how its bytes are passed by, and what becomes of its value."""

    __slots__ = ("_last", "action", "column", "is_written", "mask", "null", "null_made", "size", "some_made", "text")

    def __init__(self, declared: Mapping[str, Any], action: Action | None, made: Mapping[str, Any] | None) -> None:
        own = dict(declared)
        primitive = without_attributes(avro_of(own))
        self.size = _SIZES[primitive if isinstance(primitive, str) else primitive["type"]]
        self.column, self.is_written = column_name(own), "until" not in attributes_of(own)
        self.null = own["type"].index("null") << 1
        self.action, self.mask = action, None if action is None else action.mask
        self.text = None if self.mask is None else _text(avro_of(own))
        place = 0 if made is None else made["type"].index("null")
        self.null_made, self.some_made = bytes([place << 1]), bytes([(1 - place) << 1])
        # Of most updates the rows before and after have the same value.
        self._last: tuple[bytes, bytes] = b"", b""

    def masked(self, text: bytes) -> bytes:
        """Return the mask of a value's text, as the cell that is written."""
        known, made = self._last
        if (known != text or not made) and self.mask is not None:
            out = Buffer()
            out.write_string(self.mask(text).decode())
            made = self.some_made + out.taken()
            self._last = text, made
        return made


def _put_cells(raw: bytes, at: int, cells: Sequence[_Cell], out: list[bytes]) -> int:
    """Put out the cells of a row or a key, and the texts of values that their types cannot carry; return the end."""
    start, held = at, {}
    for cell in cells:
        first = at
        is_null = raw[at] == cell.null
        at += 1
        if not is_null:
            if cell.size == _VARINT:
                while raw[at] & 0x80:
                    at += 1
                at += 1
            elif cell.size == _SIZED:
                if (size := raw[at]) < _LONG:
                    at += 1 + (size >> 1)
                else:
                    size, at = _long(raw, at)
                    at += size
            else:
                at += cell.size
        if cell.action is None:
            continue
        out.append(raw[start:first])
        start = at
        if cell.text is not None:
            if is_null and cell.is_written:
                held[cell.column] = len(out), cell
            out.append(cell.null_made if is_null else cell.masked(cell.text(raw[first + 1 : at])))
    out.append(raw[start:at])
    return _put_texts(raw, at, cells, out, held)


def _put_texts(
    raw: bytes, at: int, cells: Sequence[_Cell], out: list[bytes], held: Mapping[str, tuple[int, _Cell]]
) -> int:
    """Put out the texts of values that their types cannot carry; those of masked columns are masked in their place."""
    if not raw[at]:
        out.append(_NOTHING)
        return at + 1
    parts, at = _blocks(raw, at, 2)
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    for name, text in texts.items():
        if name in held:
            place, cell = held[name]
            out[place] = cell.masked(text.encode())
    protected, made = {cell.column for cell in cells if cell.action is not None}, Buffer()
    write_texts(made, {name: text for name, text in texts.items() if name not in protected})
    out.append(made.taken())
    return at


def _put_absent(raw: bytes, at: int, cells: Sequence[_Cell], out: list[bytes]) -> tuple[int, bool]:
    """Put out the names of the columns that a row lacks, without those that are left out; return the end."""
    if not raw[at]:
        out.append(_NOTHING)
        return at + 1, False
    names, at = _blocks(raw, at, 1)
    gone = {cell.column for cell in cells if cell.action is not None and cell.mask is None}
    kept, made = [name for name in names if name not in gone], Buffer()
    if kept:
        made.write_long(len(kept))
        for name in kept:
            made.write_string(name)
    out.append(made.taken() + _NOTHING)
    return at, bool(kept)


def _blocks(raw: bytes, at: int, most: int) -> tuple[list[str], int]:
    """Return the texts of an array, or of a map where an item has two, and where it ends."""
    texts = []
    count, at = _long(raw, at)
    while count:
        for _ in range(count * most):
            size, at = _long(raw, at)
            texts.append(raw[at : at + size].decode())
            at += size
        count, at = _long(raw, at)
    return texts, at


def _protected_row(
    version: _Version | None,
    key: bytes | None,
    payload: bytes,
    lacks: bool,  # noqa: FBT001  as the row has it
) -> tuple[bytes | None, bytes, bool]:
    if version is None or not payload:
        return key, payload, lacks
    return (None if key is None else version.key(key), *version.envelope(payload))


def _long(raw: bytes, at: int) -> tuple[int, int]:
    """Return a long of Avro's, and where it ends."""
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < _LONG:
            return value >> 1 ^ -(value & 1), at
        shift += 7


def _text(avro: Any) -> Callable[[bytes], bytes]:
    """Return what turns the bytes of a value into its text: the same for all formats and sizes of a type.

    A number is its digits, without zeros behind the last figure, a time as ISO 8601 spells it, and bytes stay.
    """
    kind = without_attributes(avro)
    if isinstance(kind, dict):
        return partial(_LOGICAL[kind["logicalType"]], kind)
    return _PRIMITIVES[kind]


def _sized(raw: bytes) -> bytes:
    size, at = _long(raw, 0)
    return raw[at : at + size]


def _decimal(kind: Mapping[str, Any], raw: bytes) -> bytes:
    unscaled = int.from_bytes(_sized(raw), "big", signed=True)
    # Made of a text: the result of a calculation would have 28 digits.
    text = format(Decimal(f"{unscaled}E-{kind.get('scale', 0)}"), "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text).encode()


def _moment(zone: str, raw: bytes, *, unit: int = 1) -> bytes:
    micros = _long(raw, 0)[0] * unit
    try:
        return ((_DATE + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat() + zone).encode()
    except OverflowError:  # a year that Python does not have
        return str(micros).encode()


def _day(_: Any, raw: bytes) -> bytes:
    days = _long(raw, 0)[0]
    try:
        return (_DATE + timedelta(days=days)).date().isoformat().encode()
    except OverflowError:
        return str(days).encode()


def _clock(_: Any, raw: bytes) -> bytes:
    return (_DATE + timedelta(microseconds=_long(raw, 0)[0])).time().isoformat().encode()


_PRIMITIVES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "string": _sized,
    "bytes": _sized,
    "int": lambda raw: str(_long(raw, 0)[0]).encode(),
    "long": lambda raw: str(_long(raw, 0)[0]).encode(),
    "boolean": lambda raw: b"true" if raw[0] else b"false",
    "float": lambda raw: repr(unpack("<f", raw)[0]).encode(),
    "double": lambda raw: repr(unpack("<d", raw)[0]).encode(),
}
_LOGICAL: Final[dict[str, Callable[[Any, bytes], bytes]]] = {
    "decimal": _decimal,
    "date": _day,
    "time-micros": _clock,
    "timestamp-micros": lambda _, raw: _moment("Z", raw),
    "timestamp-millis": lambda _, raw: _moment("Z", raw, unit=1000),
    "local-timestamp-micros": lambda _, raw: _moment("", raw),
}
