"""The attribute `json` of wire schemas: what a converter needs and Avro's types do not say.

The specification allows attributes that it does not define as metadata; they leave payloads and
fingerprints unchanged. All of them are listed here and nowhere else. On a field:

| key | value | meaning |
| --- | --- | --- |
| `name` | string | the JSON member's name, where it is not the field's |
| `missing` | `"null"` or `"absent"` | how this format usually sends a member without a value; a message that departs from it is noted in `extras` |
| `required` | true | a message without this member is refused |
| `members` | `"rest"` | a map that takes all members the record does not name |
| `members` | `"extras"` | a map that takes what no other field carries; the last field of the envelope |
| `tells` | true | this member's presence tells the format |
| `tells` | list of strings | one of these values tells the format |
| `operation` | true | this member says what kind of change the message is |
| `tombstone` | true | null here says that nothing more is to come of a key |
| `local_time` | `"event_time"` or `"system_time"` | this member is that time of a change, as text without a zone |

On the outermost record, about the format as a whole:

| key | value | meaning |
| --- | --- | --- |
| `update` | `"two messages"` | an update comes as two messages, its halves, which share an id |
| `batched` | true | one position may be that of many messages |
| `rows` | list of strings | these members tell of all rows of a message |
| `shard` | `"random"` | without a key the shard of a change is chosen at random |
| `id` | `"position"` | the messages need an id, which is made from the position of their change |

On an enum:

| key | value | meaning |
| --- | --- | --- |
| `other` | a symbol | the symbol for text that is no symbol; the text itself goes into `extras` |
| `spellings` | object | another spelling to the symbol it stands for; the spelling itself goes into `extras` |

On a record with the one string field `text`, as a branch of a column value:

| key | value | meaning |
| --- | --- | --- |
| `holds` | `"number"` | a JSON number's text |
| `holds` | `"text"` | an object's or array's compact JSON text |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.types import Enum, Field, Primitive, Record, Type, Union
from cdcavro.errors import SchemaError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ATTRIBUTE: Final = "json"
_TWO_MESSAGES: Final = "two messages"
_TIMES: Final = ("event_time", "system_time")


@dataclass(frozen=True, slots=True)
class FieldRule:
    """What the attribute of a field says; `name` is the JSON member's name."""

    name: str
    missing: str = "absent"
    required: bool = False
    members: str = ""
    tells: bool | tuple[str, ...] = False
    operation: bool = False
    tombstone: bool = False
    local_time: str = ""


@dataclass(frozen=True, slots=True)
class FormatRule:
    """What the attribute of the outermost record says of its format, in the words of the list above."""

    update: str = ""
    batched: bool = False
    rows: tuple[str, ...] = ()
    shard: str = ""
    id: str = ""

    @property
    def has_halves(self) -> bool:
        """Whether an update comes as two messages."""
        return self.update == _TWO_MESSAGES


@dataclass(frozen=True, slots=True)
class EnumRule:
    """What the attribute of an enum says."""

    other: str = ""
    spellings: Mapping[str, str] = field(default_factory=dict)


def field_rule(declared: Field) -> FieldRule:
    """Read the rule of a field.

    Raises `SchemaError` for a key or value that is not in the list above, and for a field that is
    neither nullable nor required nor a map of members.
    """
    said = _said(declared.attributes, declared.name)
    rule = FieldRule(
        name=_one(said, "name", declared.name, lambda value: isinstance(value, str), declared.name),
        missing=_one(said, "missing", "absent", lambda value: value in ("null", "absent"), declared.name),
        required=_flag(said, "required", declared.name),
        members=_one(said, "members", "", lambda value: value in ("rest", "extras"), declared.name),
        tells=_tells(said, declared.name),
        operation=_flag(said, "operation", declared.name),
        tombstone=_flag(said, "tombstone", declared.name),
        local_time=_one(said, "local_time", "", lambda value: value in _TIMES, declared.name),
    )
    if said:
        raise SchemaError(declared.name, f"the attribute json has no key {shown(min(said))}")
    if rule.required == is_nullable(declared.type) and not rule.members:
        raise SchemaError(declared.name, "a field is either nullable or required")
    return rule


_OF_A_FORMAT: Final = frozenset(FormatRule.__dataclass_fields__)


def format_rule(declared: Record) -> FormatRule:
    """Return what the outermost record of a wire schema says of its format. Raises `SchemaError`."""
    said = _said(declared.attributes, declared.name)
    rule = FormatRule(
        update=_one(said, "update", "", lambda value: value == _TWO_MESSAGES, declared.name),
        batched=_flag(said, "batched", declared.name),
        rows=tuple(_one(said, "rows", [], _are_strings, declared.name)),
        shard=_one(said, "shard", "", lambda value: value == "random", declared.name),
        id=_one(said, "id", "", lambda value: value == "position", declared.name),
    )
    if said:
        raise SchemaError(declared.name, f"the attribute json has no key {shown(min(said))}")
    return rule


def marked(declared: Type, mark: str) -> Iterator[tuple[tuple[Field, ...], Any]]:
    """Return the way to each member whose attribute has a mark, from the outside, and what the mark says."""
    for branch in declared.branches if isinstance(declared, Union) else (declared,):
        for member in branch.fields if isinstance(branch, Record) else ():
            said = getattr(field_rule(member), mark)
            if said:
                yield (member,), said
            for below, value in marked(member.type, mark):
                yield (member, *below), value


def enum_rule(declared: Enum) -> EnumRule:
    """Read the rule of an enum. Raises `SchemaError`."""
    said = _said(declared.attributes, declared.name)
    symbols = declared.symbols
    rule = EnumRule(
        other=_one(said, "other", "", lambda value: value in symbols, declared.name),
        spellings=_one(said, "spellings", {}, lambda value: _are_spellings(value, symbols), declared.name),
    )
    if said:
        raise SchemaError(declared.name, f"the attribute json has no key {shown(min(said))}")
    return rule


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _are_spellings(value: Any, symbols: tuple[str, ...]) -> bool:
    return isinstance(value, dict) and all(symbol in symbols for symbol in value.values())


def holds(declared: Type) -> str:
    """Return what a branch of a column value holds: `"number"`, `"text"`, or an empty text for a plain type.

    Raises `SchemaError`.
    """
    if not isinstance(declared, Record):
        return ""
    said = _said(declared.attributes, declared.name)
    held: str = _one(said, "holds", "", lambda value: value in ("number", "text"), declared.name)
    plain = [(one.name, one.type) for one in declared.fields] == [("text", Primitive("string"))]
    if said.keys() - _OF_A_FORMAT or (held and not plain):
        raise SchemaError(declared.name, "json.holds belongs to a record with the one string field text")
    return held


def is_nullable(declared: Type) -> bool:
    """Return whether a type is a union with null."""
    return isinstance(declared, Union) and Primitive("null") in declared.branches


def _said(attributes: Mapping[str, Any], where: str) -> dict[str, Any]:
    said = attributes.get(ATTRIBUTE, {})
    if not isinstance(said, dict):
        raise SchemaError(where, "the attribute json is not an object")
    return dict(said)


def _one(said: dict[str, Any], key: str, default: Any, fits: Any, where: str) -> Any:
    value = said.pop(key, default)
    if value is not default and not fits(value):
        raise SchemaError(where, f"json.{key} is not one of its values")
    return value


def _flag(said: dict[str, Any], key: str, where: str) -> bool:
    return _one(said, key, None, lambda value: value is True, where) is True


def _tells(said: dict[str, Any], where: str) -> bool | tuple[str, ...]:
    tells = said.pop("tells", False)
    if _are_strings(tells):
        return tuple(tells)
    if not isinstance(tells, bool):
        raise SchemaError(where, "json.tells is neither true nor a list of strings")
    return tells
