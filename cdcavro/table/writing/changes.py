"""Changes straight to typed rows: payloads of `change.avsc` that are like one which the exact way has typed before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdcavro.change.model import Change, replace
from cdcavro.engine.machine import RowEngine
from cdcavro.table.messages import MessageTyper, pieces_of
from cdcavro.table.writing.writer import NOWHERE
from cdcavro.wire.formats import change_format

if TYPE_CHECKING:
    from cdcavro.engine.row_program import RowProgram
    from cdcavro.table.tables import Tables
    from cdcavro.table.writing.writer import TableWriter
    from cdcavro.wire.format import Format


class ChangeTyper(MessageTyper):
    """Turns payloads of changes, whatever format they came in, into typed rows, as `MessageTyper` does with messages.

    The `Tables` must have learned all. A change says itself where it arrived, so no places are told. `members` are passed
    over: only the format that a change came in has use for them, and no row has.
    """

    def __init__(self, tables: Tables) -> None:
        super().__init__(change_format().name, tables, unavailable=None, is_all_learned=True)

    def changes(self, message: bytes) -> list[Change]:
        """Return the change of a payload. Raises `PayloadError`."""
        return [replace(Change.from_avro(message), members=None)]

    def _own_engine(self) -> RowEngine | None:
        pieces = pieces_of(self._tables.zone)
        return None if pieces is None else RowEngine(change_format().program, (), pieces, False, True)  # noqa: FBT003

    @staticmethod
    def _format_of(_name: str) -> Format:
        return change_format()

    def _program(self, message: bytes, change: Change) -> RowProgram | None:
        if self._tables.given_table.by_topic and not change.source.table:
            return None  # the topic, which names the table, is no part of the pattern
        return super()._program(message, change)

    def _is_clear(self, message: bytes, change: Change) -> bool:  # noqa: ARG002  as the engine sees
        return True

    def _is_sent(self, change: Change, completed: Change) -> bool:
        """Return whether the change states no types of its own, so that its values were read by those of the table."""
        return completed.columns is not change.columns

    def _of_pattern(self, program: RowProgram, writer: TableWriter, change: Change, position: int) -> RowProgram:
        made = super()._of_pattern(program, writer, change, position)
        # A change has its place beside its pattern, and says itself whether it has a transaction.
        made.place, made.is_empty_none = NOWHERE, False
        return made
