"""Names as links: code in a text that is a public name, a command or an SQL function leads to where that is described.

What begins with `cdcavro` and is neither described nor to be imported is a missing name, which fails the build.
"""

from __future__ import annotations

import builtins
import collections.abc
import datetime as dt
import fractions
import importlib
import re
import typing
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

from cdcavro import FORMATS
from cdcavro.cli import main
from cdcavro.wire.formats import change_format, get_format
from reference import sources
from reference.python import described, mentioned
from reference.schema_text import named_types

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

# A kind of link that Sphinx leaves to `find_missing`: to an anchor, and with the looks of the code that it is.
_OWN: Final = "name"
_DOTTED: Final = re.compile(r"cdcavro(?:\.[A-Za-z_][A-Za-z0-9_]*)+(?:\(\))?")
_CLASS: Final = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")
_COMMAND: Final = re.compile(r"cdcavro ([a-z]+)")
# The beginning of a class, a function or an assignment: to parse all modules for that would take as long as many pages.
_DEFINED: Final = re.compile(r"^(?:class |def |type | *(?=\w+ =))?(\w+)(?=[\[(:]| =)", re.MULTILINE)
_SQL: Final = re.compile(r"(cdc_[a-z_]+)(?:\(\))?")
# Where names come from that signatures use and nothing here describes.
_OUTSIDE: Final = (builtins, typing, collections.abc, dt, fractions)
_LIBRARIES: Final = frozenset({"Event", "Path", "PathLike", "UUID", "array"})
_ARROW: Final = ("pa.", "pyarrow.")
# Headers of Kafka records and properties of lake tables, which are no names of Python's.
_HEADERS: Final = frozenset(
    {"cdcavro.job", "cdcavro.batch", "cdcavro.order", "cdcavro.headers", "cdcavro.complete_until", "cdcavro.cluster"}
    | {"cdcavro.begun", "cdcavro.true", "cdcavro.created", "cdcavro.origin"}
)
# Names of metrics.
_METRICS: Final = frozenset(
    {"cdcavro.rows", "cdcavro.lag_seconds", "cdcavro.last_batch_timestamp_seconds", "cdcavro.stopped_tables"}
)
# Spark's own names, one of which the package has for something else as well.
_SPARK: Final = frozenset(
    {"Column", "DataFrame", "SparkSession", "StructType"}
    | {"QueryStartedEvent", "QueryProgressEvent", "QueryIdleEvent", "QueryTerminatedEvent"}
)


class LinkedNames(SphinxTransform):
    """Turn code that names something into a link to it."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        """Go through a page: first through what autodoc made links of, then through the code in its text."""
        for link in list(self.document.findall(pending_xref)):
            if link["reftarget"] in _SPARK and str(link.get("py:module")).startswith("cdcavro.spark"):
                link.replace_self(link.children)
        for literal in list(self.document.findall(nodes.literal)):
            if _is_linked(literal):
                continue
            target = _target(literal.astext())
            if target is not None:
                self._link(literal, *target)

    def _link(self, literal: nodes.literal, domain: str, kind: str, target: str) -> None:
        link = pending_xref(
            "",
            refdomain=domain,
            reftype=kind,
            reftarget=target,
            refexplicit=True,
            refwarn=True,
            refdoc=self.env.docname,
        )
        link.source, link.line = literal.source, literal.line
        literal.replace_self(link)
        link += literal


class SettingEntry(SphinxRole):
    """The name of a setting in its table, which links lead to and searching finds."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the name as a link to itself, and note the place."""
        place = f"setting-{self.text.replace('.', '-')}"
        link = nodes.reference("", "", nodes.literal("", self.text.rpartition(".")[2]), refid=place, ids=[place])
        self.env.domains.standard_domain.note_object("setting", self.text, place, location=link)
        return [link], []


def _is_linked(literal: nodes.literal) -> bool:
    """Return whether code is in a title or in a link of the page's own, within which no link may be."""
    inside = literal.parent if isinstance(literal.parent, nodes.inline) else literal
    return isinstance(inside.parent, (pending_xref, nodes.reference, nodes.title))


def _target(text: str) -> tuple[str, str, str] | None:
    if _DOTTED.fullmatch(text) and text not in _avro_names() | _HEADERS | _METRICS:
        return "py", "obj", text.removesuffix("()")
    if _CLASS.fullmatch(text) and text in _by_last_part():
        return "py", "obj", _by_last_part()[text]
    command = _COMMAND.match(text)
    if command and (text == command[0] or command[1] in main.commands):
        return "std", _OWN, f"cdcavro-{command[1]}"
    if _SQL.fullmatch(text):
        return "std", _OWN, text.removesuffix("()")
    return None


@cache
def _by_last_part() -> dict[str, str]:
    homes = [*mentioned(), *reversed(described().values())]
    return {home.rpartition(".")[2]: home for home in homes}


@cache
def _avro_names() -> frozenset[str]:
    """Return the names of the types in the wire schemas, which are as long as those of Python."""
    return frozenset(
        declared.name
        for format in (*map(get_format, FORMATS), change_format())
        for declared in named_types(format.envelope)
    )


def find_missing(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Node) -> nodes.Node | None:
    """Resolve a Python name that Sphinx did not find: another name of what is described, or a name from outside."""
    target = node["reftarget"]
    if (node.get("refdomain"), node["reftype"]) == ("std", _OWN):
        page, place = env.domains.standard_domain.anonlabels.get(target, ("", ""))
        return make_refnode(app.builder, node["refdoc"], page, place, content) if page else None
    if node.get("refdomain") != "py":
        return None
    full = described().get(target) or _by_last_part().get(target)
    if full and full != target:
        domain = env.domains["py"]
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", full, node, content)
    if _is_outside(target) or _is_there(target):
        return content
    return None


def _is_outside(name: str) -> bool:
    last = name.rpartition(".")[2]
    return (
        last in _LIBRARIES
        or name.startswith(_ARROW)
        or name in _defined()
        or any(hasattr(module, last) for module in _OUTSIDE)
    )


@cache
def _defined() -> frozenset[str]:
    """Return the names of all that the package defines: signatures have some that no page describes."""
    return frozenset(name for module in sources.modules() for name in _DEFINED.findall(sources.text(module)))


def _is_there(name: str) -> bool:
    """Return whether a name of the package can be imported, although it is not public."""
    if not name.startswith("cdcavro."):
        return False
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        try:
            for part in parts[end:]:
                value = getattr(value, part)
        except AttributeError:
            return False
        return True
    return False
