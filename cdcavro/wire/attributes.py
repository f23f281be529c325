"""The attribute `json` of wire schemas: what a converter needs to know and Avro's types cannot express.

The specification allows attributes that it does not define as metadata; they leave payloads and
fingerprints unchanged. All keys of `json` are listed here and nowhere else. On a field:

| key | value | meaning |
| --- | --- | --- |
| `name` | string | the JSON member's name, if it differs from the field's |
| `missing` | `"null"` or `"absent"` | how this format usually sends a member without a value; departures from it are noted in `extras` |
| `required` | true | a message without this member is refused |
| `text` | true | a string may stand here in place of the object; it goes into `extras`, and the field is null |
| `members` | `"rest"` | a map of all members that the record does not name |
| `members` | `"extras"` | a map of what no other field carries; the last field of the envelope (see also `kafka`) |
| `tells` | true | the presence of this member identifies the format |
| `tells` | list of strings | any of these values identifies the format |
| `version` | true | this member says the version of the format; others than those in `tells` are remarked on |
| `necessary` | true | a message without one of the values in `tells` is none of this format; without `tells`, one of the words in `ops` |
| `necessary` | list of strings | a message without one of these values is none of this format, unless the format is named |
| `operation` | true | this member says what kind of change the message is; of several the first that has a value |
| `ops` | object | what the words of the operation mean, each as a symbol of `ChangeOp` in `change.avsc`; under `""` none |
| `means` | one of `MEANINGS` | what this member is of a change, for the default bridge; its `part` follows |
| `tombstone` | true | null here means that the key is gone: no more changes of it follow |
| `part` | one of `PARTS` | which part of a typed row this member is, for the engine; `"unused"` if rows have nothing of it |
| `position` | one of `POSITIONS` | how the engine reads the numbers of a position, if this member has a value; the first one decides |
| `unit` | `"s"`, `"ms"` or `"us"` | the unit in which this member counts a time |
| `unit` | `"text"` or `"text of microseconds"` | this member is a text of local time, which is written with a `T` and whole seconds, or with a space and six digits more |
| `unit` | `"text in UTC"` | this member is a text of an instant, which is written with a `T`, six digits behind the seconds, and a `Z` |
| `unit` | object | the unit by operation, a symbol of `ChangeOp`; under `""` that of all others |

On the outermost record, about the format as a whole:

| key | value | meaning |
| --- | --- | --- |
| `update` | `"two messages"` | an update is sent as two messages, its halves, which share an id |
| `update` | `"changed columns"` | what the row after an update lacks and the row before it has did not change |
| `batched` | true | many messages may share one position |
| `order` | `"arrival"` | the order of arrival within a topic partition or file is the true one, and not the numbers |
| `rows` | list of strings | these members apply to all rows of a message |
| `snapshot` | `"in stream"` | rows are read while changes go on, and have their place among these |
| `key` | string | columns of the key are the members of a Kafka record's key that begin so, in lower case |
| `shard` | `"random"` | the shard of a change without a key is chosen at random |
| `id` | `"position"` | messages need an id, which is derived from the position of their change |
| `delete` | `"nulls unstated"` | in the row of a delete a null does not say that a column was null: it is not stated |
| `unstated` | string | a boolean in a row that is called like a column with this behind it says whether the column is not stated, and is no column |
| `position` | one of `POSITIONS`, or an object from connectors (`""` for none) to these | how the engine reads the numbers of a position |
| `tombstone` | `"delete"` | a Kafka record without a value is a message: the row with its key was deleted |
| `certain` | true | a message that has a member which tells the format is none of another one |
| `headers` | true | headers of a Kafka record that are called like members of its message state these |
| `mixed` | true | a message holds changes of any tables and kinds, and the engine types none of its rows |

On an enum:

| key | value | meaning |
| --- | --- | --- |
| `other` | a symbol | the symbol for any other text; the text itself goes into `extras` |
| `names` | object | the JSON text of a symbol, where it differs from the symbol |
| `spellings` | object | maps other spellings to their symbols; the spelling itself goes into `extras` |

On a record whose only field is the string `text`, as a branch of a column value:

| key | value | meaning |
| --- | --- | --- |
| `holds` | `"number"` | the text of a JSON number |
| `holds` | `"text"` | the compact JSON text of an object or array |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.types import Enum, Field, Primitive, Record, Type, Union
from cdcavro.errors import SchemaError, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ATTRIBUTE: Final = "json"
ARRIVAL: Final = "arrival"
_TWO_MESSAGES: Final = "two messages"
_CHANGED_COLUMNS: Final = "changed columns"
_UPDATES: Final = (_TWO_MESSAGES, _CHANGED_COLUMNS)
_IN_STREAM: Final = "in stream"
_DELETE: Final = "delete"
_NULLS_UNSTATED: Final = "nulls unstated"
PARTS: Final = (
    *("", "unused", "within", "before", "after", "row", "rows", "old", "key", "event_time", "event_time_fine"),
    *("system_time", "system_time_fine", "transaction", "transaction_else"),
    *(f"position_{number}" for number in range(1, 9)),
    *("place", "row_number", "row_count", "position"),
)
"""The parts of a typed row. Each is one member only, so that the engine reads what is meant.

`before` and `after` are row images; `row` is the only image, or, beside `before`, holds the columns that
changed; `rows` are several images, and `old` holds the former values of their changed columns; `key` is the key. A
`…_fine` time is preferred to the time without it, and `transaction` to `transaction_else`. The last four belong to a
change, which has one row: where it arrived, which row of how many it is, and its numbers.
"""
LOCAL: Final = "text"
LOCAL_MICROSECONDS: Final = "text of microseconds"
UTC_MICROSECONDS: Final = "text in UTC"
UNITS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1, LOCAL: 0, LOCAL_MICROSECONDS: 0, UTC_MICROSECONDS: -1}
"""How many microseconds each unit of a time has; 0 for texts of local time, and -1 for texts of instants."""
_TIME: Final = "_time"
_TIMES: Final = frozenset({"event time", "system time", "checkpoint time"})
WHOLE_ROW: Final = "whole row"
POSITIONS: Final = (
    *("none", "counts", "sequence", "whole number", "sequence id", "binlog", "log sequence", "scn", "redo", "numbers"),
    *("commit", "file offset", "trail", "time", "log place"),
)
MEANINGS: Final = {
    **dict.fromkeys(("database", "schema", "table", "full name", "db type", "db version", "tenant"), ""),
    **dict.fromkeys(("key", "statement"), ""),
    "before": "before",
    "after": "after",
    "row": "row",
    WHOLE_ROW: "after",
    "old": "old",
    "event time": "event_time",
    "system time": "system_time",
    "checkpoint time": "unused",
    "transaction": "transaction",
    "transaction else": "transaction_else",
    "position": "position_1",
    "row of position": "position_2",
    **dict.fromkeys(("key values", "nothing"), "unused"),
}
"""The part of a typed row that each meaning has; none belongs to what all messages of a kind share.

`row`, `old` and `transaction else` are as among the parts; of a statement there is no row. `whole row` is the row after
a change, and of a delete the row before it; `before` beside it has what is stated of the row before an update. `key` are
the names of its columns, or what says of each column whether it belongs to it. `key values` are the
values of these columns again, in a list or at the end of a text. `row of position` is the number of a row
among those that share a position; the last of them has none. `full name` has the names of database, schema and table
with dots between them; of two names the first is the database.
"""


@dataclass(frozen=True, slots=True)
class FieldRule:
    """The rule in a field's attribute; `name` is the JSON member's name, and the rest is as listed above."""

    name: str
    missing: str = "absent"
    required: bool = False
    text: bool = False
    members: str = ""
    tells: bool | tuple[str, ...] = False
    version: bool = False
    necessary: bool | tuple[str, ...] = False
    operation: bool = False
    ops: Mapping[str, str] = field(default_factory=dict)
    means: str = ""
    tombstone: bool = False
    part: str = ""
    position: str = ""
    # The unit in messages that hold rows.
    unit: str = ""
    # The units of messages of other operations.
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def necessary_values(self) -> tuple[str, ...]:
        """The values of which one is necessary, if this member is."""
        if isinstance(self.necessary, tuple):
            return self.necessary
        return self.tells if isinstance(self.tells, tuple) else () if self.tells else tuple(self.ops)


@dataclass(frozen=True, slots=True)
class FormatRule:
    """The rule in the outermost record's attribute, about the format as a whole, as listed above."""

    update: str = ""
    batched: bool = False
    order: str = ""
    rows: tuple[str, ...] = ()
    snapshot: str = ""
    key: str = ""
    shard: str = ""
    id: str = ""
    delete: str = ""
    unstated: str = ""
    position: str | Mapping[str, str] = ""
    tombstone: str = ""
    certain: bool = False
    headers: bool = False
    mixed: bool = False

    @property
    def has_halves(self) -> bool:
        """Whether an update is sent as two messages."""
        return self.update == _TWO_MESSAGES

    @property
    def lacks_unchanged(self) -> bool:
        """Whether what the row after an update lacks is unchanged from the row before it."""
        return self.update == _CHANGED_COLUMNS

    @property
    def has_unstated_nulls(self) -> bool:
        """Whether a null in the row of a delete says nothing of its column."""
        return self.delete == _NULLS_UNSTATED

    @property
    def reads_in_stream(self) -> bool:
        """Whether rows that are read have their place among the changes."""
        return self.snapshot == _IN_STREAM

    @property
    def has_tombstones(self) -> bool:
        """Whether a Kafka record without a value is a message."""
        return bool(self.tombstone)


@dataclass(frozen=True, slots=True)
class EnumRule:
    """The rule in an enum's attribute, as listed above."""

    other: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    spellings: Mapping[str, str] = field(default_factory=dict)

    def texts(self, symbols: Iterable[str]) -> tuple[str, ...]:
        """Return the JSON texts of symbols."""
        return tuple(self.names.get(symbol, symbol) for symbol in symbols)


def field_rule(declared: Field) -> FieldRule:
    """Return the rule of a field.

    Raises `SchemaError` for a key or value that is not listed above, and for a field that is neither
    nullable nor required nor a map of members.
    """
    attribute = _attribute(declared.attributes, declared.name)
    means = _take(attribute, "means", "", lambda value: isinstance(value, str) and value in MEANINGS, declared.name)
    if means and "part" in attribute:
        raise SchemaError(declared.name, "json.part follows from json.means")
    unit = _take(attribute, "unit", "", _is_unit, declared.name)
    units = unit if isinstance(unit, dict) else {"": unit}
    rule = FieldRule(
        name=_take(attribute, "name", declared.name, lambda value: isinstance(value, str), declared.name),
        missing=_take(attribute, "missing", "absent", lambda value: value in ("null", "absent"), declared.name),
        required=_flag(attribute, "required", declared.name),
        text=_flag(attribute, "text", declared.name),
        members=_take(attribute, "members", "", lambda value: value in ("rest", "extras"), declared.name),
        tells=_words(attribute, "tells", declared.name),
        version=_flag(attribute, "version", declared.name),
        necessary=_words(attribute, "necessary", declared.name),
        operation=_flag(attribute, "operation", declared.name),
        ops=_take(attribute, "ops", {}, _are_words, declared.name),
        means=means,
        tombstone=_flag(attribute, "tombstone", declared.name),
        part=MEANINGS.get(means, "") or _take(attribute, "part", "", lambda value: value in PARTS[1:], declared.name),
        position=_take(attribute, "position", "", lambda value: value in POSITIONS, declared.name),
        unit=units[""],
        units={op: unit for op, unit in units.items() if op},
    )
    if attribute:
        raise SchemaError(declared.name, f"the attribute json has no key {shown(min(attribute))}")
    if (_TIME in rule.part or means in _TIMES) != bool(rule.unit):
        raise SchemaError(declared.name, "a time has a unit, and nothing else has")
    if rule.necessary is not False and not rule.necessary_values:
        raise SchemaError(declared.name, "a necessary value is one of those in json.tells or json.ops")
    if rule.required == is_nullable(declared.type) and not rule.members:
        raise SchemaError(declared.name, "a field is either nullable or required")
    return rule


_OF_A_FORMAT: Final = frozenset(FormatRule.__dataclass_fields__)


def format_rule(declared: Record) -> FormatRule:
    """Return the rule of a format from the outermost record of its wire schema. Raises `SchemaError`."""
    attribute = _attribute(declared.attributes, declared.name)
    rule = FormatRule(
        update=_take(attribute, "update", "", lambda value: value in _UPDATES, declared.name),
        batched=_flag(attribute, "batched", declared.name),
        order=_take(attribute, "order", "", lambda value: value == ARRIVAL, declared.name),
        rows=tuple(_take(attribute, "rows", [], _are_strings, declared.name)),
        snapshot=_take(attribute, "snapshot", "", lambda value: value == _IN_STREAM, declared.name),
        key=_take(attribute, "key", "", lambda value: isinstance(value, str), declared.name),
        shard=_take(attribute, "shard", "", lambda value: value == "random", declared.name),
        id=_take(attribute, "id", "", lambda value: value == "position", declared.name),
        delete=_take(attribute, "delete", "", lambda value: value == _NULLS_UNSTATED, declared.name),
        unstated=_take(attribute, "unstated", "", lambda value: isinstance(value, str), declared.name),
        position=_take(attribute, "position", "", _are_positions, declared.name),
        tombstone=_take(attribute, "tombstone", "", lambda value: value == _DELETE, declared.name),
        certain=_flag(attribute, "certain", declared.name),
        headers=_flag(attribute, "headers", declared.name),
        mixed=_flag(attribute, "mixed", declared.name),
    )
    if attribute:
        raise SchemaError(declared.name, f"the attribute json has no key {shown(min(attribute))}")
    return rule


def marked_paths(declared: Type, mark: str) -> Iterator[tuple[tuple[Field, ...], Any]]:
    """Yield the path to each member whose rule sets `mark`, outermost field first, and the value of the mark."""
    for branch in declared.branches if isinstance(declared, Union) else (declared,):
        for member in branch.fields if isinstance(branch, Record) else ():
            value = getattr(field_rule(member), mark)
            if value:
                yield (member,), value
            for path, value_below in marked_paths(member.type, mark):
                yield (member, *path), value_below


def member_path(fields: Iterable[Field]) -> tuple[str, ...]:
    """Return the names of the JSON members of fields."""
    return tuple(field_rule(declared).name for declared in fields)


def enum_rule(declared: Enum) -> EnumRule:
    """Return the rule of an enum. Raises `SchemaError`."""
    attribute = _attribute(declared.attributes, declared.name)
    symbols = declared.symbols
    rule = EnumRule(
        other=_take(attribute, "other", "", lambda value: value in symbols, declared.name),
        names=_take(attribute, "names", {}, lambda value: _are_names(value, symbols), declared.name),
        spellings=_take(attribute, "spellings", {}, lambda value: _are_spellings(value, symbols), declared.name),
    )
    if attribute:
        raise SchemaError(declared.name, f"the attribute json has no key {shown(min(attribute))}")
    return rule


def _are_positions(value: Any) -> bool:
    return set(value.values() if isinstance(value, dict) else (value,)) <= set(POSITIONS)


def _is_unit(value: Any) -> bool:
    if isinstance(value, dict):
        return "" in value and all(isinstance(op, str) and unit in UNITS for op, unit in value.items())
    return isinstance(value, str) and value in UNITS


def _are_words(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(op, str) for op in value.values())


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _are_names(value: Any, symbols: tuple[str, ...]) -> bool:
    if not (isinstance(value, dict) and all(isinstance(name, str) for name in value.values())):
        return False
    texts = [value.get(symbol, symbol) for symbol in symbols]
    return value.keys() <= set(symbols) and len(set(texts)) == len(texts)


def _are_spellings(value: Any, symbols: tuple[str, ...]) -> bool:
    return isinstance(value, dict) and all(symbol in symbols for symbol in value.values())


def content_of(declared: Type) -> str:
    """Return what a branch of a column value holds: `"number"`, `"text"`, or an empty string for a plain type.

    Raises `SchemaError` for an unknown key or value.
    """
    if not isinstance(declared, Record):
        return ""
    attribute = _attribute(declared.attributes, declared.name)
    content: str = _take(attribute, "holds", "", lambda value: value in ("number", "text"), declared.name)
    plain = [(field.name, field.type) for field in declared.fields] == [("text", Primitive("string"))]
    if attribute.keys() - _OF_A_FORMAT or (content and not plain):
        raise SchemaError(declared.name, "json.holds belongs to a record with the one string field text")
    return content


def is_nullable(declared: Type) -> bool:
    """Return whether a type is a union with null."""
    return isinstance(declared, Union) and Primitive("null") in declared.branches


def is_whole_number(declared: Type) -> bool:
    """Return whether a type is that of a whole number, which may be missing."""
    return isinstance(declared, Union) and set(declared.branches) == {Primitive("null"), Primitive("long")}


def _attribute(attributes: Mapping[str, Any], where: str) -> dict[str, Any]:
    attribute = attributes.get(ATTRIBUTE, {})
    if not isinstance(attribute, dict):
        raise SchemaError(where, "the attribute json is not an object")
    return dict(attribute)


def _take(attribute: dict[str, Any], key: str, default: Any, fits: Any, where: str) -> Any:
    value = attribute.pop(key, default)
    if value is not default and not fits(value):
        raise SchemaError(where, f"json.{key} is not one of its values")
    return value


def _flag(attribute: dict[str, Any], key: str, where: str) -> bool:
    return _take(attribute, key, None, lambda value: value is True, where) is True


def _words(attribute: dict[str, Any], key: str, where: str) -> bool | tuple[str, ...]:
    words = attribute.pop(key, False)
    if _are_strings(words):
        return tuple(words)
    if not isinstance(words, bool):
        raise SchemaError(where, f"json.{key} is neither true nor a list of strings")
    return words
