"""Table rows that wait: what a kill leaves of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cdcavro.sync.outputs.table_rows import WaitingRows


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
