"""Escaped names of tables and columns in a lake, and of topics: injective, where the true names are not possible there.

In a lake, an escaped character is its code point in hexadecimal digits between tildes, as in `~2f~` for a slash. A
tilde that begins what looks like that is escaped itself, so that two names never become one.

A topic's name has letters, digits, `_` and `-`; any other character in a part of a table's name is its code point
between `_x` and `_`, as in `_x2f_` for a slash, and a `_` that begins what looks like that is escaped itself. Dots
stand between the parts, and so in none of them.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from cdcavro.errors import SchemaError, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdcavro.table.ddl.steps import TableName

OWN: Final = "_cdc_"
MAX_BYTES: Final = 200
_CONTROL: Final = r"\x00-\x1f\x7f\ud800-\udfff"
# What has a meaning in paths and addresses.
_MEANING: Final = r"/\\:*?\"'<>|%#{}^`\[\]=,;&$!@+"
# Of tildes, only that of a number behind a name (`orders~2`) stays: no escape ends a name without a tilde of its own.
_UNFIT_FOLDER: Final = re.compile(rf"~(?![0-9]+\Z)|[{_CONTROL}{_MEANING}]|\A[._ ]|[. ]\Z")
# Printable, but nothing is seen; Jamo, which normal forms put together; marks, of which any number fits on a letter.
_UNSEEN: Final = re.compile(r"[\u1100-\u11ff\u2800\ua960-\ua97f\ud7b0-\ud7ff\U0001d159]")
_EMPTY: Final = "~~"
# Behind an empty name, and behind that of a schema, so that no table's folder is around those of a schema of its name.
_NAMELESS: Final = f"{_EMPTY}empty"
_SCHEMA: Final = _EMPTY
# What stands before what names another lake table of a table, where names are plain; no name has it of its own.
_BESIDE: Final = "_x_"
_UNFIT_PLAIN: Final = re.compile(r"_(?=x[0-9a-f]*(?:[^a-z0-9]|\Z))|[^a-z0-9_]|^\Z")
# What stands for the name of a table in that of its topic.
TABLE_NAME: Final = "{name}"
MAX_TOPIC_LENGTH: Final = 249
_UNFIT_TOPIC: Final = re.compile(r"_(?=x[0-9a-f]*[^A-Za-z0-9-])|[^A-Za-z0-9_-]|^\Z")
_PLAIN_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]*\Z")
# What stands for the parts of a table's name in that of its lake table, of which one must be there.
_PLACE: Final = re.compile(r"\{(database|schema|table)\}")
_TABLE: Final = "{table}"
_BRACES: Final = re.compile(r"\{([^{}]{1,40})\}")
_PARTS: Final = (2, 3)


def _unfit(characters: str, *others: str, end: str = "", flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return what is escaped: characters, others, and a tilde before what is a code or would become one."""
    behind = "|".join(filter(None, ["~", f"[{characters}]", end]))
    return re.compile("|".join([rf"~(?=[0-9a-f]*(?:{behind}))", f"[{characters}]", *others]), flags)


# Spark puts what a variable says for `${NAME}` anywhere in a text of SQL, that of the environment for `${env:NAME}`.
_UNFIT_COLUMN: Final = _unfit(_CONTROL, "^_(?=cdc_)", r"\$(?=\{)", end=r"\$\{", flags=re.IGNORECASE)
# Beside that, what Delta Lake takes in a name only if the column has another name in its files.
_UNFIT_PLAIN_COLUMN: Final = _unfit(_CONTROL + " ,;{}()=", "^_(?=cdc_)", flags=re.IGNORECASE)
# Beside that, what hides a folder, and what Windows cannot have at the end.
_UNFIT_OLDER: Final = _unfit(_CONTROL + _MEANING, "^[._ ]", "[. ]$", end="[. ]$")


def quote(*names: str) -> str:
    """Return names quoted for Spark's SQL, joined by dots.

    >>> print(quote("shop", "we`ird"))
    `shop`.`we``ird`
    """
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def plain_column(name: str) -> str:
    """Return the name of a column as every reader of Delta Lake's tables has it.

    >>> plain_column("a b")
    'a~20~b'
    """
    return _UNFIT_PLAIN_COLUMN.sub(_escape, name)


def column_names(names: Iterable[str], *, is_plain: bool = False) -> list[str]:
    """Return the names that columns have in a lake table: the true ones, wherever that is possible.

    Lakes do not tell upper from lower case: of names that differ in nothing else, the first keeps its own. With
    `is_plain`, they are names as `plain_column` has them.

    >>> column_names(["a", "A", "we/ird", "_cdc_order", ""])
    ['a', '~41~', 'we/ird', '~5f~cdc_order', '~~']
    """
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        escaped = (_UNFIT_PLAIN_COLUMN if is_plain else _UNFIT_COLUMN).sub(_escape, name) or _EMPTY
        if escaped.casefold() in taken:
            escaped = "".join(_code(character) if _is_cased(character) else character for character in escaped)
        if escaped.casefold() in taken:
            raise SchemaError(name, f"two columns are called {shown(name)}")
        taken.add(escaped.casefold())
        found.append(escaped)
    return found


def folder_names(table: TableName, suffix: str = "", *, is_older: bool = False) -> tuple[str, ...]:
    """Return the names of the folders, or of the namespaces and the table, that a table has in a lake.

    No table's folder is that of another, or lies in it, under any normal form of Unicode; a schema's folder has `~~`
    behind its name, and that of a database that is not known is `~~`. `suffix` names another lake table that belongs to
    the table; no table has such a name. With `is_older`, they are the names that tables had at first. Raises
    `SchemaError` for a name of more than 200 bytes, to which the suffix does not count.

    >>> from cdcavro.table import TableName
    >>> folder_names(TableName("shop", None, "../t"), "deletes"), folder_names(TableName("shop", "public", "t"))
    (('shop', '~2e~.~2f~t~~deletes'), ('shop', 'public~~', 't'))
    """
    if is_older:
        folders = _older_folders(table)
    else:
        schema = [] if table.schema is None else [_folder(table.schema) + _SCHEMA]
        folders = [_EMPTY if table.database is None else _folder(table.database), *schema, _folder(table.table)]
    # Without the suffix, so that a table has all of its lake tables or none.
    for folder in folders:
        if len(folder.encode()) > MAX_BYTES:
            raise SchemaError(table.table, f"{shown(folder)} is longer than {MAX_BYTES} bytes, and no name in a lake")
    if suffix:
        folders[-1] += f"{_EMPTY}{suffix}"
    return tuple(folders)


def plain_names(table: TableName, suffix: str = "") -> tuple[str, str]:
    """Return the names of a table's namespace and of the table, of small letters, digits and `_` only.

    Catalogs such as Hive's have no others. Any other character is its code point between `_x` and `_`, as in topics.
    `suffix` is as in `folder_names`. Raises `SchemaError` for a table in a schema, as there is one level of namespaces, and
    for a name of more than 200 bytes, to which the suffix does not count.

    >>> from cdcavro.table import TableName
    >>> plain_names(TableName("shop", None, "Order-Items"), "changes")
    ('shop', 'order_x2d_items_x_changes')
    """
    if table.schema is not None:
        raise SchemaError(
            table.table,
            "its schema would be a second level of namespaces, which the catalog does not have: say, for example, name ="
            ' "{database}.{schema}_{table}" in [lake]',
        )
    namespace, own = [_UNFIT_PLAIN.sub(_escape_topic, (part or "").lower()) for part in (table.database, table.table)]
    for name in (namespace, own):
        if len(name) > MAX_BYTES:
            raise SchemaError(table.table, f"{shown(name)} is longer than {MAX_BYTES} bytes, and no name in a lake")
    return namespace, f"{own}{_BESIDE}{suffix}" if suffix else own


def caseless_name(table: TableName) -> tuple[str | None, ...]:
    """Return a table's name without letter case: equal for names that differ only in case or in Unicode's normal form.

    >>> from cdcavro.table import TableName
    >>> caseless_name(TableName("Shop", None, "ORDERS")) == caseless_name(TableName("shop", None, "orders"))
    True
    """
    return tuple(None if part is None else _fold(part) for part in (table.database, table.schema, table.table))


def _fold(name: str) -> str:
    """Return a name as Unicode's caseless matching of compatible texts compares it."""
    text = unicodedata.normalize("NFD", name)
    for _ in range(2):
        text = unicodedata.normalize("NFKD", text.casefold())
    return text


def _older_folders(table: TableName) -> list[str]:
    parts = [part for part in (table.database, table.schema, table.table) if part is not None]
    if table.schema is not None and table.database is None:
        parts = ["", *parts]
    return [_UNFIT_OLDER.sub(_escape, part) or _EMPTY for part in parts]


def _folder(name: str) -> str:
    """Return a part of a table's name as a folder: what would be seen as something else, or not at all, is escaped."""
    escaped = _UNFIT_FOLDER.sub(_escape, name) or _NAMELESS
    return escaped if escaped.isascii() else "".join(one if _is_seen(one) else _code(one) for one in escaped)


def _is_seen(character: str) -> bool:
    """Return whether a character is printed by itself, and is the same under each normal form that composes."""
    is_steady = unicodedata.normalize("NFKC", character) == character
    is_mark = unicodedata.category(character).startswith("M")
    return character.isprintable() and is_steady and not is_mark and not _UNSEEN.match(character)


def _escape(match: re.Match[str]) -> str:
    return _code(match[0])


def _code(character: str) -> str:
    return f"~{ord(character):x}~"


def _is_cased(character: str) -> bool:
    return character.lower() != character or character.upper() != character


def check_name_template(template: str) -> None:
    """Raise `ValueError` unless a template names lake tables: `{table}` is in it, and it has two or three parts.

    The parts stand between dots; in each may be `{database}`, `{schema}` and `{table}`, and other text.
    """
    parts, others = template.split("."), _PLACE.sub("", template)
    is_plain = "{" not in others and "}" not in others
    if len(parts) not in _PARTS or not all(parts) or _TABLE not in template or not is_plain:
        raise ValueError(
            "a name in the lake has two or three parts between dots, made of {database}, {schema} and text, with {table} in"
            f' one of them, such as "lake.{{database}}_{{table}}", not {shown(template)}{_meant_place(others)}'
        )


def _meant_place(others: str) -> str:
    """Return what is asked of a text beside the places of a template that has one which looks like a place."""
    known = ("database", "schema", "table")
    near = [one for name in _BRACES.findall(others) for one in get_close_matches(name.strip().lower(), known, n=1)]
    return f": did you mean {{{near[0]}}}?" if near else ""


def name_by_template(template: str, table: TableName) -> TableName:
    """Return what a table is called in the lake by a template, whose last part is the table and the first the database.

    Raises `SchemaError` for a table whose name lacks a part that the template has.

    >>> from cdcavro.table import TableName
    >>> name_by_template("cdc_{database}.{schema}_{table}", TableName("shop", "public", "orders"))
    TableName(database='cdc_shop', schema=None, table='public_orders')
    """

    def part(found: re.Match[str]) -> str:
        stated: str | None = getattr(table, found[1])
        if stated is None:
            raise SchemaError(
                table.table, f"name in [lake] is {template}, and the table has no {found[1]}: leave it out"
            )
        return stated

    first, *middle, last = [_PLACE.sub(part, one) for one in template.split(".")]
    return replace(table, database=first, schema=middle[0] if middle else None, table=last)


def check_topic_template(template: str) -> None:
    """Raise `ValueError` unless a template names topics: one for each table, with `{name}` once, or one for all."""
    if not template or not _PLAIN_TOPIC.match(template.replace(TABLE_NAME, "", 1)) or template in (".", ".."):
        raise ValueError(
            f"a topic has letters, digits, dots, _ and -, and {TABLE_NAME} for the name of the table, not {shown(template)}"
        )


def topic_name(template: str, table: TableName) -> str:
    """Return the topic of a table. Raises `SchemaError` for a name of more than 249 characters.

    >>> from cdcavro.table import TableName
    >>> topic_name("cdc.{name}", TableName("shop", None, "orders_v2")), topic_name("{name}", TableName(None, "s", "a.b"))
    ('cdc.shop.orders_v2', '_x_.s.a_x2e_b')
    """
    parts = [
        _UNFIT_TOPIC.sub(_escape_topic, part)
        for part in (table.database, table.schema, table.table)
        if part is not None
    ]
    if table.schema is not None and not table.database:
        # A database that is not known differs from one whose name is empty.
        parts = ["_x_", *parts] if table.database is None else ["_x__", *parts[1:]]
    topic = template.replace(TABLE_NAME, ".".join(parts))
    if len(topic) > MAX_TOPIC_LENGTH:
        raise SchemaError(table.table, f"{shown(topic)} is longer than {MAX_TOPIC_LENGTH} characters, and no topic")
    return topic


def _escape_topic(match: re.Match[str]) -> str:
    return f"_x{ord(match[0]):x}_" if match[0] else "_x_"
