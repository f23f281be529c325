"""The SQL functions, made from the table by which `cdcavro.spark.register` registers them."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any, Final

from reference import markdown

# What an argument of each name may be.
_ARGUMENTS: Final = {
    "text": "string or binary",
    "payload": "binary",
    "format": "string",
    "image": "map of column values",
}


def sql_page(_: str = "") -> str:
    """Return the page of all SQL functions."""
    functions = importlib.import_module("cdcavro.spark.sql").SQL_FUNCTIONS  # where Spark is, or stands in for itself
    return markdown.page(*(_function(name, function) for name, function in functions.items()))


def _function(name: str, function: Any) -> str:
    arguments = list(inspect.signature(function.convert).parameters)
    prose, example = _taken_apart(inspect.getdoc(function.convert) or "")
    typed = ", ".join(f"`{argument}` ({_ARGUMENTS[argument]})" for argument in arguments)
    result = (
        function.returns
        if "<" in function.returns.partition(" ")[0] or " " not in function.returns
        else f"struct<{function.returns}>"
    )
    return markdown.page(
        f"({name})=",
        f"## {name}",
        markdown.block("sql", f"{name}({', '.join(arguments)})"),
        prose,
        f"* Arguments: {typed}.\n* Result: `{result}`; null for null.",
        markdown.block("sql", example),
    )


def _taken_apart(doc: str) -> tuple[str, str]:
    """Return the text of a docstring, and its example, which is indented."""
    paragraphs = doc.split("\n\n")
    example = [inspect.cleandoc("\n" + paragraph) for paragraph in paragraphs if paragraph.startswith("    ")]
    prose = [re.sub(r"\s+", " ", paragraph) for paragraph in paragraphs if not paragraph.startswith("    ")]
    return "\n\n".join(prose), "\n\n".join(example)
