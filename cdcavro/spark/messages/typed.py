"""Messages straight to typed tables on Spark: the rows of a column of text, with nothing in Avro in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import pyarrow as pa
from pyspark.sql import functions as sf

from cdcavro.arrow.message_batches import Places
from cdcavro.exact.instants import check_zone
from cdcavro.formats.connect_columns import PLACEHOLDER, check_word
from cdcavro.spark.arrow_udf import in_worker
from cdcavro.spark.messages.rows import MessageBatch, outcome_type, rows_and_rejects
from cdcavro.spark.messages.survey import MessageSurvey
from cdcavro.spark.tables import OUTLINE, OUTLINE_TYPE, TypedTables, learn
from cdcavro.table.messages import MessageTyper
from cdcavro.table.tables import ERROR as ERROR_POLICY
from cdcavro.table.tables import Tables
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import tzinfo
    from typing import Unpack

    from pyspark.sql import Column, DataFrame

    from cdcavro.table.columns.overrides import TypeOverrides

    Batches = Iterable[pa.RecordBatch]


class TableOptions(TypedDict, total=False):
    """The arguments of `cdcavro.Tables`."""

    given: TypeOverrides
    zone: tzinfo | None
    on_misfit: str
    decimals: str
    times: str
    binaries: str
    table: str | None


def messages_to_tables(
    messages: DataFrame,
    col: Column | str,
    format: str,
    *,
    place: Column | str | None = None,
    unavailable: str | None = PLACEHOLDER,
    **options: Unpack[TableOptions],
) -> TypedTables:
    """Return the rows of a column of messages, JSON text as string or binary, as typed payloads of their tables.

    The rows, tables and faults are those of `to_tables` over `to_changes`, with nothing in Avro in between. `place` and
    `unavailable` are as in `to_changes`, `options` (given, zone, on_misfit, decimals, times, binaries, table) as in
    `to_tables`. `rejects` has everything that is no row: the columns message, place (if given), change (binary, null for
    what is no message at all) and error. `messages` is read twice, first to learn the tables: persist it if that is
    expensive.
    """
    get_format(format)
    check_word(unavailable)
    zone, is_strict = options.get("zone"), options.get("on_misfit") == ERROR_POLICY
    check_zone(zone)
    learned = Tables(**options)
    given_table = learned.given_table
    columns = [sf.col(col) if isinstance(col, str) else col]
    if place is not None:
        columns.append(sf.col(place) if isinstance(place, str) else place)
    texts = messages.select(*[one.alias(name) for one, name in zip(columns, ("message", "place"), strict=False)])

    def surveyed(batches: Batches) -> Batches:
        survey = MessageSurvey(format, zone, unavailable, given_table)
        for batch in batches:
            yield pa.RecordBatch.from_struct_array(pa.array(list(survey.outlines(batch)), OUTLINE_TYPE))

    def typed(batches: Batches) -> Batches:
        typer = MessageTyper(format, learned, unavailable=unavailable, is_all_learned=True)
        for batch in batches:
            is_able = not (given_table.by_topic and "topic" in Places(batch).names)
            yield from MessageBatch(typer, batch, is_strict=is_strict, is_able=is_able).batches()

    faults = learn(learned, texts.mapInArrow(in_worker(surveyed), OUTLINE))
    outcomes = texts.mapInArrow(in_worker(typed), outcome_type(texts.schema, MessageBatch))
    return TypedTables(*rows_and_rejects(outcomes), learned.tables, faults)
