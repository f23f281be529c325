"""Table rows that wait: what a kill leaves of them."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdcavro.lake.lakes import Attempt
from cdcavro.sync.local.local_outcomes import ROWS, LocalFiles
from cdcavro.sync.outputs.table_rows import WaitingRows
from cdcavro.sync.outputs.writer import BatchRows
from support.waiting_rows import FACTS


def test_rows_of_which_forgetting_was_cut_off_do_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is left of them is no half of a table's rows, which could not be read."""
    waiting = WaitingRows(tmp_path)
    (tmp_path / "3" / "batch=7" / "rows").mkdir(parents=True)
    assert waiting.tables() == [3]

    def killed(path: Path, **_: Any) -> None:
        if path.exists():
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            waiting.forget(3)
    assert waiting.tables() == []
    (tmp_path / "3" / "batch=9").mkdir(parents=True)
    waiting.forget(3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("since", [None, datetime(2026, 1, 2, tzinfo=UTC)])
def test_rows_that_wait_know_since_when_they_may_be_written(tmp_path: Path, since: datetime | None):
    """A batch that was run before it had to wait may have left them in the table, without a transaction on Spark."""
    rows = pa.table([[None] * 3] * len(ROWS), schema=ROWS)
    waiting = WaitingRows(tmp_path)
    waiting.keep(LocalFiles(), 3, BatchRows(7, rows, FACTS, Attempt(since is None, since)))
    (found,) = waiting.read(LocalFiles(), 3, 8)
    assert (found.batch, found.rows.num_rows, found.attempt) == (7, 3, Attempt(since=since))
    assert waiting.counts() == {3: 3}
    waiting.forget(3)
    assert waiting.counts() == {}
