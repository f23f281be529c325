"""Lake tables of other pipelines: they are refused, or adopted, and nothing is in them twice."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest

from cdcavro.errors import FileError
from support.jobs import PipelineJob
from support.messages import canal

ROWS = [
    canal("INSERT", [{"id": "1", "a": "1"}], id=1),
    canal("INSERT", [{"id": "2", "a": "2"}], id=2),
    canal("UPDATE", [{"id": "1", "a": "3"}], id=3, old=[{"a": "1"}]),
    canal("DELETE", [{"id": "2", "a": "2"}], id=4),
]

MORE = [
    canal("ALTER", [], id=5, isDdl=True, sql="ALTER TABLE t ADD COLUMN b INT NOT NULL DEFAULT 7"),
    canal("INSERT", [{"id": "3", "a": "4", "b": "5"}], id=6),
]

LAST = canal("INSERT", [{"id": "4", "a": "4", "b": "6"}], id=7)


def contents(job: PipelineJob) -> list[list[tuple[Any, ...]]]:
    """Return what all lake tables of a table hold."""
    order = "hex(_cdc_order)"
    return [
        job.rows("d.t", "id", "a", "b", order),
        job.rows("d.t", "_cdc_op", "id", "a", "b", order, suffix="changes"),
        job.rows("d.t", order, "hex(_cdc_key)", suffix="deletes"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.parametrize("behavior", ["lenient", "try_evolve"])
def test_a_lake_table_of_another_pipeline_is_refused_and_once_adopted_has_nothing_twice(
    job: Callable[..., PipelineJob], kind: str, behavior: str
):
    """Whose it is stands in its properties; a state that was lost begins anew, and reads all again."""
    made = job(kind, is_changelog=True, behavior=behavior)
    for message in (*ROWS, *MORE):
        made.send(message)
    made.run()
    before = contents(made)
    assert len(before[1]) == 6
    shutil.move(made.folder / "state", made.folder / "lost")
    for act in (made.check, made.run):
        with pytest.raises(FileError, match=r"expected a lake table of this pipeline, got one of another .*--adopt"):
            act()
    assert contents(made) == before
    made.lake["is_adopting"] = True
    made.send(LAST)
    made.check()
    made.run()
    made.run_again()
    state, log, deletes = contents(made)
    assert [row[:3] for row in state] == [(1, 3, 7), (3, 4, 5), (4, 4, 6)]
    assert [row for row in log if row[1] != 4] == before[1]
    assert len(log) == 7
    assert deletes == before[2]
    # It is this pipeline's now, and the other one's no more.
    del made.lake["is_adopting"]
    assert made.run() == []
    made.send(canal("INSERT", [{"id": "5", "a": "4", "b": "6"}], id=8))
    made.run()
    assert len(contents(made)[1]) == 8
    shutil.rmtree(made.folder / "state")
    shutil.move(made.folder / "lost", made.folder / "state")
    for act in (made.check, made.run):
        with pytest.raises(FileError, match="got one of another pipeline"):
            act()
    assert len(contents(made)[1]) == 8
