"""Protection of personal data: columns of rows that are left out or masked, before anything of a row is written.

A task takes the payloads of typed rows apart as soon as they are made, and whoever writes rows gets tables whose
versions have the same columns: so no lake, changelog, topic, file or registry, no row that waits and no report has
anything else. A column is found by its name, or by that which it had before a statement renamed it, and a table by the
first of its names that a rule fits. What may be a protected column under another name stops the pipeline.

Rows for which a condition does not hold are left out in the same place.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from msgspec import Struct

from cdcavro.avro.defaults import encoded_defaults
from cdcavro.engine.machine import RowRules
from cdcavro.errors import DdlError, JobError, StructureError, plain, shown
from cdcavro.sync.conversion.row_filters import ColumnDecision, FunctionDecision, RowFilter, ruled_rows, versions_of
from cdcavro.sync.outputs.reject_places import CUT, GOT, RAW, RECORD_KEY, SHOWN_VALUE
from cdcavro.sync.row_cells import Action, Condition, RowCell, put_absent, put_cells, value_text
from cdcavro.table.ddl.cursor import dialect_of, tokenize
from cdcavro.table.table_names import fits_caseless
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
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from cdcavro.sync.conversion.row_filters import RowFunction
    from cdcavro.sync.outputs.reject_places import RejectCipher
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table

    # What becomes of the fields of a version, by their names.
    Actions = Mapping[str, Action]

SHA256: Final = "sha256"
HMAC: Final = "hmac-sha256"
METHODS: Final = (SHA256, HMAC)
KEEP, OMIT, ENCRYPT = "keep", "omit", "encrypt"
REJECTS_RAW: Final = (KEEP, OMIT, ENCRYPT)
HIDDEN: Final = "…"
# The name of a function: no condition is one, as each has an operator.
_FUNCTION: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_VALUE: Final = re.compile(SHOWN_VALUE)
# The length of a message is no value of it, and is needed when it is read again.
_CUT: Final = re.compile(rf"[a-z_]+: \$: {CUT}")


class Constant(Struct, frozen=True, forbid_unknown_fields=True):
    """A mask that gives each value the same text.

    * `constant` (str): the text.
    """

    constant: str


_LEFT_OUT: Final = Action("left out", None)


class RowRule(Struct, frozen=True, forbid_unknown_fields=True):
    """What is written of the rows of tables; if several rules match a table, the first one applies.

    Names of columns match regardless of case. Raises `ValueError`.

    * `match`: a pattern of the names of tables, as in `include` of `[tables]`, but regardless of case.
    * `leave_out`: the names of columns that are written nowhere.
    * `mask`: how the values of columns are replaced, by their names: by the digest `sha256` or `hmac-sha256`, or by a
      constant.
    * `plain`: patterns of the names of new columns that may be written unmasked although no statement says that they are
      not protected columns under another name.
    * `salt`: the text put before each value that `sha256` digests.
    * `secret`: the key of `hmac-sha256`.
    * `where`: the condition that rows must meet to be written: a column, an operator and a constant, or the name of a
      function, `module:function`, and in Python the function itself. A function gets a mapping of columns to values, and
      returns True or False.
    """

    match: str
    leave_out: tuple[str, ...] = ()
    mask: dict[str, str | Constant] = {}
    plain: tuple[str, ...] = ()
    salt: str | None = None
    secret: str | None = None
    # A text or a `RowFunction`, of which msgspec has no type.
    where: Any = None
    # What it may say, for errors.
    aspects: ClassVar[str] = "leave_out, mask or where"

    def __repr__(self) -> str:
        return f"RowRule(match={self.match!r}, leave_out={self.leave_out!r}, mask={self.mask!r}, ...)"

    def __post_init__(self) -> None:
        """Check what does not depend on a table."""
        if not self.match:
            raise ValueError("match is a pattern of the names of tables, not an empty one")
        if not self.says_something:
            raise ValueError(f"a rule for tables has {self.aspects}, or it says nothing")
        _ = self.condition
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

    @property
    def says_something(self) -> bool:
        """Whether the rule says anything at all."""
        return self.is_about_rows

    @property
    def is_about_rows(self) -> bool:
        """Whether rows or columns are left out or masked."""
        return self.is_protecting or self.where is not None

    @property
    def is_protecting(self) -> bool:
        """Whether any column is left out or masked."""
        return bool(self.leave_out or self.mask)

    @property
    def condition(self) -> Condition | None:
        """The condition for rows, unless a function decides. Raises `ValueError`."""
        if not (self.where is None or isinstance(self.where, str) or callable(self.where)):
            raise ValueError(f"where is a condition or a function, not {shown(self.where)}")
        is_condition = isinstance(self.where, str) and _FUNCTION.fullmatch(self.where) is None
        return Condition.of(self.where) if is_condition else None

    @property
    def function(self) -> RowFunction | None:
        """The function that decides on rows, if one does: a named one is imported. Raises `ValueError`."""
        if self.where is None or self.condition is not None:
            return None
        return self.where if callable(self.where) else _function(self.where)

    @property
    def where_text(self) -> str | None:
        """The condition, or the name of the function."""
        return _function_name(self.where) if callable(self.where) else self.where

    @property
    def methods(self) -> dict[str, str]:
        """How columns are masked, by name, in words without a secret."""
        return {name: "constant" if isinstance(one, Constant) else one for name, one in self.mask.items()}

    @property
    def columns(self) -> list[str]:
        """The names of the columns that the rule is about."""
        return [*self.leave_out, *self.mask, *([] if self.condition is None else [self.condition.column])]

    def fits(self, table: TableName) -> bool:
        """Return whether the rule is for a table, regardless of case: a rule may call `Users` `users`."""
        return fits_caseless(table, self.match)

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
            salt = (self.salt or "").encode()
            return Action(SHA256, partial(_sha256, salt), copies=(hashlib.sha256(salt).copy,))
        secret = (self.secret or "").encode()
        return Action(HMAC, partial(_hmac, secret), copies=_hmac_copies(secret))


def _function(name: str) -> RowFunction:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except Exception as error:  # the module may raise anything
        raise ValueError(
            f"where names the function {shown(name)}, which cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise ValueError(f"where names {shown(name)}, which is no function")  # noqa: TRY004  as for other settings
    return cast("RowFunction", found)


def _function_name(function: RowFunction) -> str:
    """Return the module and the name of a function; of another callable, those of its class."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def _constant(text: bytes, _: bytes) -> bytes:
    return text


def _sha256(salt: bytes, text: bytes) -> bytes:
    return hashlib.sha256(salt + text).hexdigest().encode()


def _hmac(secret: bytes, text: bytes) -> bytes:
    return hmac.digest(secret, text, "sha256").hex().encode()


def _hmac_copies(secret: bytes) -> tuple[Callable[[], Any], ...]:
    """Return what copies the two hash objects of an HMAC (RFC 2104): of the text, and of the digest of that."""
    block = hashlib.sha256().block_size
    key = (hashlib.sha256(secret).digest() if len(secret) > block else secret).ljust(block, b"\0")
    return tuple(hashlib.sha256(bytes(byte ^ pad for byte in key)).copy for pad in (0x36, 0x5C))


class Protection:
    """What is written of the rows of a pipeline's tables: the first of `rules` (`RowRule`) that fits a table counts."""

    def __init__(self, rules: Sequence[RowRule] = ()) -> None:
        self.rules = tuple(rules)
        self.is_protecting = any(rule.is_protecting for rule in self.rules)
        self._tables: dict[int, tuple[Any, list[_Version | None]]] = {}

    def __reduce__(self) -> tuple[type[Protection], tuple[tuple[RowRule, ...]]]:
        """Pickle the rules alone."""
        return Protection, (self.rules,)

    @property
    def layout(self) -> str:
        """A text, without a secret, that differs between rules that write rows differently."""
        stated = [
            [rule.match, sorted(rule.leave_out), sorted(rule.methods.items()), sorted(rule.plain), rule.where_text]
            for rule in self.rules
        ]
        return hashlib.sha256(json.dumps(stated).encode()).hexdigest() if stated else ""

    def public(self, table: Table) -> Table:
        """Return a table as writers of rows see it. Raises `JobError` if its rows may not be written."""
        versions = self.versions(table) if self.rules else []
        if not any(versions):
            return table
        public = [one.public if one else own for one, own in zip(versions, table.versions, strict=True)]
        return replace(table, versions=public)

    def rows(self, rows: pa.RecordBatch, tables: Sequence[Table]) -> tuple[pa.RecordBatch, dict[int, StructureError]]:
        """Return rows, in a batch of `placing.ROWS`, as they may be written. Raises `JobError` as `public` does.

        Also return the errors of messages with rows for which `where` cannot be decided, by the indexes of the
        messages.
        """
        if not self.rules:
            return rows, {}
        numbers = rows.column("number").unique().to_pylist()
        versions = {number: found for number in numbers if any(found := self.versions(tables[number]))}
        if not versions:
            return rows, {}
        pairs, places = versions_of(rows)
        own = [versions[number][version - 1] if number in versions else None for number, version in pairs]
        return ruled_rows(rows, own, places)

    def decisions(self, rows: pa.RecordBatch, tables: Sequence[Table]) -> dict[tuple[int, int], Any]:
        """Return what is decided of the rows of each version of a table, by the number of the table and the version.

        Equal decisions write rows of equal versions alike. Raises `JobError` as `public` does.
        """
        found = versions_of(rows)[0] if self.rules else []
        return {(number, version): self.decision(tables[number], version) for number, version in found}

    def decision(self, table: Table, version: int) -> tuple[str, Mapping[str, str], frozenset[str]] | None:
        """Return what is decided of a version of a table, None if it has no rule. Raises `JobError` as `public` does."""
        found = self.versions(table)[version - 1]
        return None if found is None else found.decision

    def outcomes(
        self, rows: Sequence[dict[str, Any]], *, has_raw: bool, cipher: RejectCipher | None = None
    ) -> list[dict[str, Any]]:
        """Return outcomes of messages that show no value; without `has_raw`, no bytes of messages either.

        A cipher that has a public key encrypts these bytes. Where bytes are left out or encrypted, no reason quotes them.
        """
        if not self.is_protecting and has_raw and not (cipher is not None and cipher.is_encrypting):
            return list(rows)

        def hidden(part: str, value: bytes | None) -> bytes | None:
            return None if not has_raw else value if cipher is None else cipher.encrypt(value, part)

        return [
            {
                **row,
                **{part: hidden(part, row[part]) for part in (RAW, RECORD_KEY)},
                "reason": without_values(row["reason"]),
            }
            if "reason" in row
            else row
            for row in rows
        ]

    def versions(self, table: Table) -> list[_Version | None]:
        """Return what becomes of the versions of a table, None for those that are written as they are.

        Raises `JobError` if rows of the table may not be written.
        """
        stamp = (len(table.versions), table.schema, table.is_stated, table.unexplained.size)
        known = self._tables.get(table.number)
        if known is None or known[0] != stamp:
            self._tables[table.number] = known = (stamp, self._versions(table, () if known is None else known[1]))
        return known[1]

    def _versions(self, table: Table, made: Sequence[_Version | None]) -> list[_Version | None]:
        """Return the versions of a table; `made` are those that were made before some of them were known."""
        rules = [next((one for one in self.rules if one.fits(schema.table)), None) for schema in table.versions]
        first = next((i for i, rule in enumerate(rules) if rule is not None), len(rules))
        if first == len(rules):
            return [None] * first
        rule, known, sought = cast("RowRule", rules[first]), dict[str, Action](), dict[str, Action]()
        # The column of a condition is followed as one that is left out.
        condition, has_where = rule.condition, rule.where is not None
        finder = None if condition is None else RowRule(rule.match, (condition.column,))
        for schema in table.versions[first:]:
            known |= rule.actions(schema, known)
            sought |= {} if finder is None else finder.actions(schema, sought)
        if rule.is_protecting:
            _check_origins(table, rule, known)
        found: list[_Version | None] = [None] * first
        for i, schema in enumerate(table.versions[first:], first):
            # A late statement may have said what a column of an older version was before.
            own, old = rule.actions(schema, known), made[i] if i < len(made) else None
            of_condition = frozenset() if finder is None else frozenset(finder.actions(schema, sought))
            if old is not None and old.is_of(schema, own, of_condition):
                found.append(old)
            else:
                found.append(_Version(schema, own, rule, of_condition) if own or has_where else None)
        return found


def without_values(sentence: str | None) -> str | None:
    """Return a sentence on a message without any value that it may quote, and without names.

    >>> without_values("expected an integer, got 'x1' at 7")
    'expected an integer, got … at …'
    """
    if sentence is None or _CUT.fullmatch(sentence):
        return sentence
    before, got, behind = sentence.partition(GOT)
    return _QUOTED.sub(HIDDEN, before) + got + _VALUE.sub(HIDDEN, behind)


def without_literals(text: str) -> str:
    """Return a text, such as that of a statement, without the literals that may be values: quoted texts and numbers.

    >>> without_literals("ALTER TABLE t ADD a INT DEFAULT 5")
    'ALTER TABLE t ADD a INT DEFAULT …'
    """
    return _VALUE.sub(HIDDEN, text)


def without_values_of(statement: str, db_type: str | None) -> str:
    """Return the text of a statement with … for each literal and without comments, as its database splits it.

    It is … alone where its end or its literals are in doubt: it cannot be split, or has a backslash, which ends a text or
    does not by a mode of the server.

    >>> without_values_of("ALTER TABLE `t 1` ADD a TEXT DEFAULT 'it''s' /* 7 */", "MYSQL")
    'ALTER TABLE `t 1` ADD a TEXT DEFAULT …'
    """
    try:
        tokens = [] if "\\" in statement else tokenize(statement, dialect_of(db_type))
    except DdlError:
        tokens = []
    parts: list[str] = []
    end = 0
    for token in tokens:
        parts += [" "] if parts and token.start > end else []
        parts.append(token.raw if token.kind in ("word", "name", "other") else HIDDEN)
        end = token.end
    return "".join(parts) or HIDDEN


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
        when = f"since {shown(min(gone))} disappeared" if gone else "in a message that states no columns"
        raise JobError(
            f"{_label(table.schema.table)} has the new column {shown(min(new))} {when}, and no statement says that it is"
            " not a protected column under another name: nothing is written. Name it in leave_out, mask or plain of"
            f' match = "{rule.match}"'
        )


class _Version:
    """A version of a table some of whose columns are protected: its schema as it is written, and its payloads.

    Raises `JobError` if its key is left out, or has no distinct values any more.
    """

    def __init__(self, schema: TableSchema, actions: Actions, rule: RowRule, of_condition: frozenset[str]) -> None:
        _check_key(schema, actions)
        self._schema, self._is_protected = schema, bool(actions)
        # The rule, how fields are protected by it, and which of them a condition is about.
        self.decision = rule.match, {name: action.label for name, action in actions.items()}, of_condition
        self._cells: list[RowCell] = []
        record, fields = schema.record, []
        for i, one in enumerate(record["fields"]):
            if not is_column(one):
                fields.append(one)
                continue
            action = actions.get(one["name"])
            made = one if action is None else None if action.mask is None else _masked_field(schema, i, action)
            fields += [] if made is None else [made]
            self._cells.append(RowCell(schema, one, action, made))
        self.public = TableSchema(as_schema(record | {"fields": fields})) if actions else schema
        self._filter = None if rule.where is None else self._new_filter(rule)
        written = {cell.column: cell for cell in self._cells if cell.is_written}
        self._key = [written[name] for name in schema.key_names] if schema.key is not None else []
        condition = None if self._filter is None else self._filter.test
        self.rules = RowRules([cell.rule for cell in self._cells], [*map(self._cells.index, self._key)], condition)

    def is_of(self, schema: TableSchema, actions: Actions, of_condition: frozenset[str]) -> bool:
        """Return whether this is what becomes of a version whose fields are protected so."""
        labels = {name: action.label for name, action in actions.items()}
        return (self._schema, *self.decision[1:]) == (schema, labels, of_condition)

    def _new_filter(self, rule: RowRule) -> RowFilter:
        table, condition, function = _label(self._schema.table), rule.condition, rule.function
        if condition is None:
            own = FunctionDecision(cast("RowFunction", function), plain(rule.where_text or ""), table)
            return RowFilter(own, table, self._cells)
        columns = {column.field: column.name for column in self._schema.columns if column.field in self.decision[2]}
        # A column that has the name counts before one that had it.
        exact = [name for name in columns.values() if name.casefold() == condition.column.casefold()]
        name = next(iter([*exact, *columns.values()]), None)
        cell = next((cell for cell in self._cells if cell.is_written and cell.column == name), None)
        return RowFilter(ColumnDecision(condition, table, cell), table, self._cells)

    def row(
        self, operation: str, key: bytes | None, payload: bytes, *, lacks: bool
    ) -> tuple[str, bytes | None, bytes, bool] | None:
        """Return the operation, the key and the envelope of a row as they are written, and whether it lacks columns.

        Return None for a row that is left out. Raises `StructureError` for one that does not say enough.
        """
        if self._filter is not None:
            kept = self._filter.row(operation, payload, lacks=lacks)
            if kept is None:
                return None
            operation, payload, lacks = kept
        if not self._is_protected:
            return operation, key, payload, lacks
        return (operation, None if key is None else self.key(key), *self.envelope(payload))

    def key(self, payload: bytes) -> bytes:
        """Return a key as it is written."""
        out: list[bytes] = []
        at = put_cells(payload, 0, self._key, out)
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
                at = put_cells(payload, at, self._cells, out)
                at, lacks = put_absent(payload, at, self._cells, out)
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
        fill = action.mask(value_text(avro_of(one))(raw[1:])).decode()
    kept = {key: value for key, value in attributes_of(one).items() if key in ("column", "since", "until")}
    own = {key: value for key, value in one.items() if key in ("name", "aliases")}
    return field_with_type(own | {ATTRIBUTE: kept | {"note": f"masked by {action.label}"}}, "string", fill)
