"""The formats: a `Format` for each wire schema, in the order in which `sniff` prefers them, and one for changes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from cdcavro.avro.aliases import is_same_name
from cdcavro.avro.types import Record
from cdcavro.errors import UnknownFormatError
from cdcavro.wire.attributes import FormatRule
from cdcavro.wire.format import Format

if TYPE_CHECKING:
    from cdcavro.avro.schema import Schema

FORMATS: Final[tuple[str, ...]] = (
    "oms_default",
    "oms_default_extend_column_type",
    "oms_canal",
    "canal",
    "oms_dataworks",
    "oms_shareplex",
    "datahub_blob",
    "datahub_tuple",
    "debezium",
)
"""The names of the formats, in the order in which `sniff` prefers them."""
_USUAL: Final = FormatRule()
REGISTRY: Final[dict[str, Format]] = {name: Format(name) for name in FORMATS}


def get_format(name: str) -> Format:
    """Return the format of this name. Raises `UnknownFormatError`.

    >>> get_format("oms_canal").name
    'oms_canal'
    """
    format = REGISTRY.get(name) if isinstance(name, str) else None
    if format is None:
        raise UnknownFormatError(name, REGISTRY)
    return format


def rule_of(name: str | None) -> FormatRule:
    """Return the rule of a format as a whole; for no known format, the rule that holds for most."""
    format = REGISTRY.get(name or "")
    return _USUAL if format is None else format.rule


def format_of(schema: Schema) -> Format | None:
    """Return the format whose wire schema has this schema's name as its name or alias; None if there is none."""
    root = schema.root
    if not isinstance(root, Record):
        return None
    return next((format for format in REGISTRY.values() if is_same_name(root, format.envelope)), None)


@cache
def change_format() -> Format:
    """Return the format of `avsc/change.avsc`, which holds the changes of messages of every format."""
    return Format("change")
