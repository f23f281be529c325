"""The schemas of typed tables, shown on a table that is made and altered while the page is built."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any, Final

from cdcavro import evolve, table_schema_of, to_changes
from cdcavro.table import table_schema
from reference import markdown
from reference.formats import indented

if TYPE_CHECKING:
    from cdcavro import TableSchema

_MESSAGE: Final = """\
{"database":"shop","table":"orders","pkNames":["id"],"isDdl":false,"type":"INSERT","es":1609344671000,\
"mysqlType":{"id":"bigint unsigned","price":"decimal(10,2)","note":"varchar(200)","paid_at":"datetime(3)"},\
"data":[{"id":18446744073709551615,"price":1.20,"note":null,"paid_at":"2020-11-25 00:01:02.500"}]}"""
_ALTER: Final = "ALTER TABLE shop.orders RENAME COLUMN note TO remark, ADD COLUMN items INT NOT NULL DEFAULT 1"


def table_page(_: str = "") -> str:
    """Return the page: what the schemas say, a first version, the next one, and the envelope."""
    change = to_changes(_MESSAGE, "oms_canal")[0]
    first = table_schema_of(change)
    evolution = evolve(first, _ALTER, source=change.source)
    return markdown.page(
        "## What a schema of a table says",
        (inspect.getdoc(table_schema) or "").partition("\n\n")[2],
        "## A row",
        "The columns of this message make the first version of a table, as {py:func}`cdcavro.table_schema_of` shows:",
        markdown.block("json", indented(_MESSAGE, 88)),
        "The record of its rows:",
        _shown(json.loads(first.row.json)),
        "## A key",
        _shown(json.loads(first.key.json)) if first.key else "",
        "## The next version",
        markdown.block("sql", _ALTER),
        "What was done, in the words of {py:func}`cdcavro.evolve`:",
        "\n".join(f"* {step}" for step in evolution.steps),
        f"The verdict is `{evolution.verdict.name}`: see {{py:func}}`cdcavro.verdict`. The fields that differ:",
        _shown(_newer(first.record, evolution.schema.record)),
        "## The envelope",
        "A change is written as its table's envelope, which holds the record of a row once, in `before`; it stands here as its name:",
        _shown(_envelope(first)),
    )


def _newer(old: dict[str, Any], new: dict[str, Any]) -> list[Any]:
    return [field for field in new["fields"] if field not in old["fields"]]


def _envelope(table: TableSchema) -> dict[str, Any]:
    declared: dict[str, Any] = json.loads(table.envelope.json)
    row = json.loads(table.row.json)
    declared["fields"][0]["type"] = ["null", f"{row['namespace']}.{row['name']}"]
    return declared


def _shown(declared: Any) -> str:
    return markdown.block("json", indented(json.dumps(declared, ensure_ascii=False), 88))
