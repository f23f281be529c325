"""Names of topics, one for each table or one for all, escaped injectively into what Kafka allows.

A name holds letters, digits and `_`, and `-`; whatever else is in a part of a table's name is its code point in
hexadecimal digits between `_x` and `_`, as in `_x2f_` for a slash. A `_` that begins what looks like that is escaped
itself, so that two names never become one. Dots stand between the parts, and so in none of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cdcavro.errors import SchemaError, shown

if TYPE_CHECKING:
    from cdcavro.table.ddl.steps import TableName

NAME: Final = "{name}"
MAX_LENGTH: Final = 249
_UNFIT: Final = re.compile(r"_(?=x[0-9a-f]*[^A-Za-z0-9-])|[^A-Za-z0-9_-]|^\Z")
_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]*\Z")


def check_template(template: str) -> None:
    """Raise `ValueError` unless a template names topics: it has `{name}` for the table's name, once, or no table's."""
    if not template or not _PLAIN.match(template.replace(NAME, "", 1)) or template in (".", ".."):
        raise ValueError(
            f"a topic has letters, digits, dots, _ and -, and {NAME} for the name of the table, not {shown(template)}"
        )


def topic_name(template: str, table: TableName) -> str:
    """Return the topic of a table. Raises `SchemaError` for a name of more than 249 characters.

    >>> from cdcavro.table import TableName
    >>> topic_name("cdc.{name}", TableName("shop", None, "orders_v2")), topic_name("{name}", TableName(None, "s", "a.b"))
    ('cdc.shop.orders_v2', '_x_.s.a_x2e_b')
    """
    parts = [_UNFIT.sub(_escaped, part) for part in (table.database, table.schema, table.table) if part is not None]
    if table.schema is not None and not table.database:
        # A database that is not known is not one whose name is empty.
        parts = ["_x_", *parts] if table.database is None else ["_x__", *parts[1:]]
    topic = template.replace(NAME, ".".join(parts))
    if len(topic) > MAX_LENGTH:
        raise SchemaError(table.table, f"{shown(topic)} is longer than {MAX_LENGTH} characters, and no topic")
    return topic


def _escaped(match: re.Match[str]) -> str:
    return f"_x{ord(match[0]):x}_" if match[0] else "_x_"
