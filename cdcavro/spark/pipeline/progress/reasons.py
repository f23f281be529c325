"""The rejects of a batch by reason: values of messages are left out of it, so that there are few."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as sf

from cdcavro.lake.report.account import Reject
from cdcavro.spark.job.line_frame import plain_path
from cdcavro.spark.pipeline.rejects import rejects_of
from cdcavro.wire.sniff import MIXED, other_format

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from cdcavro.spark.pipeline.settings import Formats

_MOST: Final = 200
_LONGEST: Final = 500
_LOOKED_AT: Final = 20
_GOT: Final = ", got "
# What a sentence shows of a message: quoted, or a number, also a byte's (0xef) and a character's (U+FEFF).
_VALUE: Final = (
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|0x[0-9A-Fa-f]+|U\+[0-9A-Fa-f]+|-?[0-9][0-9,.]*(?:[eE][-+]?[0-9]+)?"""
)
_INDEX: Final = r"\[[0-9]+\]"
_LOGIN: Final = re.compile(r"//[^/@]*@")
_PLACE: Final = ("topic", "partition", "offset", "file", "line")


def rejects_by_reason(outcomes: DataFrame) -> list[Reject]:
    """Return the rejects among the outcomes of a batch of which all is learned, at most 200 reasons, each with an example."""
    reason = sf.coalesce("reason", sf.lit(""))
    prefix = sf.concat(sf.coalesce("format", sf.lit("message")), sf.lit(": "), sf.coalesce("path", sf.lit("$")))
    prefix = sf.concat(prefix, sf.lit(": "))
    said = sf.when(sf.startswith(reason, prefix), sf.substr(reason, sf.length(prefix) + 1)).otherwise(reason)
    found = rejects_of(outcomes).select(
        sf.coalesce("format", sf.lit("")).alias("own"),
        sf.regexp_replace(sf.coalesce("path", sf.lit("")), _INDEX, "[*]").alias("at"),
        kind_of(said).alias("kind"),
        sf.struct(*_PLACE, sf.substring(said, 1, _LONGEST).alias("said")).alias("one"),
    )
    counted = found.groupBy("own", "at", "kind").agg(sf.count("*").alias("count"), sf.min("one").alias("one"))
    return [
        Reject(row["own"], row["at"], row["kind"], row["count"], place_of(row["one"].asDict()), row["one"]["said"])
        for row in counted.orderBy(sf.desc("count")).limit(_MOST).collect()
    ]


def look_of(outcomes: DataFrame, formats: Formats) -> str | None:
    """Return what the first of a batch's rejects look like, if they were read as one format and look like another."""
    given = formats.given
    if not isinstance(given, str) or given == MIXED:
        return None
    return other_format([row["raw"] for row in rejects_of(outcomes).select("raw").take(_LOOKED_AT)], given)


def kind_of(said: Column) -> Column:
    """Return a sentence with its values left out, which stand behind what was expected."""
    at = sf.locate(_GOT, said)
    got = sf.regexp_replace(sf.substr(said, at), _VALUE, "…")
    whole = sf.when(at > 0, sf.concat(sf.substr(said, sf.lit(1), at - 1), got)).otherwise(said)
    return sf.substring(whole, 1, _LONGEST)


def place_of(one: dict[str, Any]) -> str:
    """Return where a message arrived, without a login."""
    if one["file"] is not None:
        # The address of a bucket may have a login.
        return f"{_LOGIN.sub('//', plain_path(one['file']))} line {one['line']}"
    return "" if one["topic"] is None else f"{one['topic']} partition {one['partition']} offset {one['offset']}"
