"""The shop through the local runner, from several partitions, cut anywhere, sent again: its tables are the server's.

What is the same however a stream is cut: rows, floors, deletes and changelogs, with their orders, columns and properties.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Any

import pytest

from cdcavro.lake.lakes import HISTORY, SOFT
from support import binary_streams
from support.kafka_server import Record
from support.local_pipelines import DELTA, ICEBERG, LocalJob, lake_section
from support.local_shop import Placed, ShopRun, placed
from support.messages import canal
from support.shop_records import as_came, through_partitions
from support.shop_streams import REPEATS, shuffled
from support.shop_tables import MESSAGES
from support.swap_streams import FORMATS, NAMED, TOOLS, SwapStream

KINDS = (DELTA, ICEBERG)
SHUFFLES, PARTS = 500, 10


def run_cut(folder: Path, kind: str, producer: str, records: list[Placed], borders: list[int], again: int) -> ShopRun:
    """Run records in batches that end at some places; one of them is run again."""
    run = ShopRun(folder, kind, producer)
    for i, (start, end) in enumerate(zip([0, *borders], [*borders, len(records)], strict=True)):
        run.batch(records[start:end], is_again=i == again)
    return run


def differences(one: ShopRun, other: ShopRun) -> list[str]:
    """Return what two runs do not say alike of their tables."""
    first, second = one.everything(), other.everything()
    return [
        f"{name}, {part}: {_apart(first.get(name, {}).get(part), second.get(name, {}).get(part))}"
        for name in sorted({*first, *second})
        for part in ("floor", "rows", "deletes", "changes")
        if first.get(name, {}).get(part) != second.get(name, {}).get(part)
    ]


def _apart(one: Any, other: Any) -> str:
    left, right = ([repr(row) for row in rows or ()] for rows in (one, other))
    return f"{[row for row in left if row not in right][:2]} and {[row for row in right if row not in left][:2]}"


def stream_of(producer: str, seed: int) -> list[Record]:
    """Return a stream that is shuffled; Canal sends no full load."""
    while producer == "canal" and ", 0 loaded" not in shuffled(producer, seed).facts:
        # How it is sent again stays the same.
        seed += len(REPEATS) * 1_000
    return through_partitions(producer, seed, "shop")


def check_cuts(folder: Path, kind: str, producer: str, seed: int) -> None:
    """Check that a shuffled stream ends with the server's tables, and says all the same when it is cut elsewhere."""
    draw, records = random.Random(seed), placed(stream_of(producer, seed))
    runs = []
    for i, count in enumerate((draw.choice((0, 1)), draw.randrange(2, 5))):
        borders = sorted(draw.sample(range(1, len(records)), count))
        again = draw.randrange(count + 1)
        runs.append(run_cut(folder / str(i), kind, producer, records, borders, again))
        runs[-1].check()
    assert differences(*runs) == [], (producer, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("producer", MESSAGES)
def test_the_shop_as_it_came_ends_with_the_tables_of_the_server(tmp_path: Path, producer: str, kind: str):
    """In one batch, and in many."""
    records = placed(as_came(producer, "shop"))
    whole = run_cut(tmp_path / "whole", kind, producer, records, [], 0)
    whole.check()
    cut = run_cut(tmp_path / "cut", kind, producer, records, [*range(20, len(records), 20)], 3)
    cut.check()
    assert differences(whole, cut) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("producer", MESSAGES)
@pytest.mark.parametrize("seed", [18, 19, 20])
def test_a_stream_says_the_same_however_it_is_cut(tmp_path: Path, producer: str, kind: str, seed: int):
    """Several partitions, three-fold delivery or one that goes back, a full load that is late."""
    check_cuts(tmp_path, kind, producer, seed)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seed"), [(DELTA, 2), (ICEBERG, 3)])
@pytest.mark.parametrize("format", binary_streams.FORMATS)
def test_histories_in_bytes_end_with_the_rows_of_their_tables(tmp_path: Path, format: str, kind: str, seed: int):
    """Statements, moved keys, full loads, partitions, messages sent again, as bytes and as JSON, damaged ones between."""
    assert binary_streams.through_partitions(tmp_path, kind, format, seed) == []


def check_versions(folder: Path, kind: str, form: str, producer: str, seed: int) -> None:
    """Check that a shuffled stream, cut anywhere, leaves the versions that its changelog makes in order, and the server's rows."""
    draw, records = random.Random(seed), placed(stream_of(producer, seed))
    borders = sorted(draw.sample(range(1, len(records)), draw.randrange(2, 5)))
    run = ShopRun(folder, kind, producer, form=form)
    for start, end in zip([0, *borders], [*borders, len(records)], strict=True):
        run.batch(records[start:end], is_again=draw.random() < 0.3)
    found = run.versions(form)
    assert len(found) >= 4
    for name, (held, wanted) in found.items():
        wrong = [pair for pair in zip_longest(held, wanted) if pair[0] != pair[1]]
        assert wrong[:1] == [], (name, producer, seed)
    run.check()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [SOFT, HISTORY])
@pytest.mark.parametrize("producer", MESSAGES)
def test_tables_have_the_versions_that_all_changes_make_in_order(tmp_path: Path, producer: str, form: str, kind: str):
    """Every type, hostile names, moved keys, TRUNCATE, ten versions of a table, messages that are sent again."""
    check_versions(tmp_path, kind, form, producer, {"canal": 18, "debezium": 19}[producer])


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.skipif(not os.environ.get("CDCAVRO_EVERY_MESSAGE"), reason="takes minutes: CDCAVRO_EVERY_MESSAGE=1")
@pytest.mark.parametrize("part", range(PARTS))
def test_500_streams_leave_the_versions_that_all_changes_make_in_order(tmp_path: Path, part: int):
    """Producers, lakes and forms take turns."""
    for seed in range(22 + part, 22 + SHUFFLES, PARTS):
        turn = seed // PARTS
        producer, kind, form = sorted(MESSAGES)[turn % 2], KINDS[turn // 2 % 2], (SOFT, HISTORY)[turn // 4 % 2]
        check_versions(tmp_path / str(seed), kind, form, producer, seed)


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.skipif(not os.environ.get("CDCAVRO_EVERY_MESSAGE"), reason="takes minutes: CDCAVRO_EVERY_MESSAGE=1")
@pytest.mark.parametrize("part", range(PARTS))
def test_500_streams_say_the_same_however_they_are_cut(tmp_path: Path, part: int):
    """Producers and lakes take turns."""
    wrong = []
    for seed in range(22 + part, 22 + SHUFFLES, PARTS):
        producer, kind = sorted(MESSAGES)[seed // PARTS % 2], KINDS[seed // PARTS // 2 % 2]
        try:
            check_cuts(tmp_path / str(seed), kind, producer, seed)
        except AssertionError as error:
            wrong.append(f"{producer} {kind} {seed}: {str(error)[:500]}")
    assert wrong == []


def _note(type: str, id: int, row: dict[str, str], **more: Any) -> bytes:
    kinds = {"id": "int", "n": "int", "title": "varchar(20)", "tag": "enum('a','b')"}
    return canal(type, [row], id=id, mysqlType={name: kinds[name] for name in row}, **more)


def _ddl(id: int, sql: str) -> bytes:
    return canal(sql.partition(" ")[0], [], id=id, isDdl=True, sql=sql)


BEGUN = (
    _ddl(1, "CREATE TABLE t (id int PRIMARY KEY, title varchar(20), n int, tag enum('a','b') NOT NULL DEFAULT 'a')"),
    *(_note("INSERT", 1 + i, {"id": f"{i}", "title": f"at first {i}", "n": "1", "tag": "b"}) for i in (1, 2, 3)),
)
DROPPING = (
    _note("UPDATE", 10, {"id": "1", "title": "later", "n": "1", "tag": "b"}, old=[{"title": "at first 1"}]),
    _note("INSERT", 11, {"id": "4", "title": "new", "n": "4", "tag": "a"}),
    _note("DELETE", 12, {"id": "3", "title": "at first 3", "n": "1", "tag": "b"}),
    _ddl(13, "ALTER TABLE t DROP COLUMN title, DROP COLUMN tag"),
    _note("UPDATE", 14, {"id": "4", "n": "40"}, old=[{"n": "4"}]),
    _note("INSERT", 15, {"id": "3", "n": "3"}),
    _ddl(16, "ALTER TABLE t ADD COLUMN title varchar(20)"),
    _note("INSERT", 17, {"id": "5", "n": "5", "title": "another"}),
)
CUTS = [cut for count in range(len(DROPPING)) for cut in combinations(range(1, len(DROPPING)), count)]


def dropping_run(folder: Path, lake: dict[str, Any], cut: Sequence[int]) -> dict[str, Any]:
    """Return what lake tables have behind a statement that drops columns, in batches that end at some places."""
    job = LocalJob(folder, lake)
    job.send(*BEGUN)
    for start, end in zip([0, *cut], [*cut, len(DROPPING)], strict=True):
        job.send(*DROPPING[start:end])
    job.run()
    found = {}
    for suffix in ("", "changes"):
        table = job.table("d.t", suffix)
        if table.properties() is not None:
            # Orders end with the place of a message, and so with its file.
            own = ("_cdc_op", "_cdc_is_deleted", "_cdc_from", "_cdc_to", "_cdc_version")
            names = sorted(name for name in table.schema().names if name in own or not name.startswith("_cdc_"))
            found[suffix] = sorted(map(repr, table.read(names).to_pylist()))
    return found


@pytest.mark.slow
def test_rows_before_a_dropped_column_keep_its_values_in_one_batch(tmp_path: Path):
    """A lake table keeps the column."""
    rows = "".join(dropping_run(tmp_path, lake_section(DELTA, tmp_path), ())[""])
    assert "'title (dropped 1)': 'later'" in rows
    assert "'title (dropped 1)': 'new'" in rows


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "more", [{}, {"changelog": True}, {"form": SOFT}, {"form": HISTORY}, {"exclude_statements": ["drop"]}]
)
def test_a_dropped_column_has_the_same_values_however_its_batches_are_cut(
    tmp_path: Path, kind: str, more: dict[str, Any]
):
    """A lake table keeps the column."""
    cuts = [tuple(range(1, len(DROPPING))), *(), *random.Random(33).sample(CUTS, 4)]
    each, *others = (
        dropping_run(tmp_path / str(i), lake_section(kind, tmp_path / str(i), **more), cut)
        for i, cut in enumerate(cuts)
    )
    assert [cut for cut, found in zip(cuts[1:], others, strict=True) if found != each] == []


# A table that tools change in copies


@pytest.mark.slow
@pytest.mark.parametrize("form", ["", SOFT, HISTORY])
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("format", FORMATS)
def test_a_table_that_a_tool_swaps_for_a_copy_goes_on_however_its_batches_are_cut(
    tmp_path: Path, format: str, tool: str, form: str
):
    """Its rows with the new columns, and all changes that were made; nothing is left of the copies."""
    check_swaps(tmp_path, format, tool, form, seed=33, is_left_out=tool not in NAMED)


@pytest.mark.slow
@pytest.mark.parametrize("tool", NAMED)
@pytest.mark.parametrize("format", FORMATS)
def test_a_copy_that_is_left_out_makes_no_difference_to_the_table_that_it_replaces(
    tmp_path: Path, format: str, tool: str
):
    """As exclude leaves them out."""
    check_swaps(tmp_path, format, tool, "", seed=34, is_left_out=True)


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.skipif(not os.environ.get("CDCAVRO_EVERY_MESSAGE"), reason="takes minutes: CDCAVRO_EVERY_MESSAGE=1")
def test_100_streams_of_a_table_that_is_swapped_end_with_its_rows(tmp_path: Path):
    """Formats, tools, forms, and whether copies are left out, by chance."""
    wrong = []
    for seed in range(100):
        draw = random.Random(seed)
        format, tool, form = draw.choice(FORMATS), draw.choice([*TOOLS]), draw.choice(("", SOFT, HISTORY))
        is_left_out = tool not in NAMED or draw.random() < 0.5
        try:
            check_swaps(tmp_path / str(seed), format, tool, form, seed, is_left_out=is_left_out)
        except AssertionError as error:
            wrong.append(f"{seed} {format} {tool} {form} {is_left_out}: {str(error)[:500]}")
    assert wrong == []


def check_swaps(folder: Path, format: str, tool: str, form: str, seed: int, *, is_left_out: bool) -> None:
    """Check the lake behind a stream of a table that is swapped, which is cut anywhere, and run again; and beside the whole."""
    draw, stream = random.Random(seed), SwapStream(seed, format, tool)
    records = placed([Record("swaps", 0, None, message) for message in stream.messages])
    tables, lake = {"exclude": [*TOOLS[tool]]} if is_left_out else {}, {"form": form} if form else {}
    said = []
    for i, count in enumerate((0, draw.randrange(1, 7))):
        borders, run = (
            sorted(draw.sample(range(1, len(records)), count)),
            ShopRun(folder / str(i), DELTA, format, tables, **lake),
        )
        for start, end in zip([0, *borders], [*borders, len(records)], strict=True):
            run.batch(records[start:end], is_again=draw.random() < 0.3)
        assert [(one.counts["rejected"], one.waiting) for one in run.reports] == [(0, {})] * len(run.reports)
        assert run.open_rows("orders", stream.columns) == stream.held
        assert [run.open_rows(name, ["id"]) for name in TOOLS[tool]] == [[], []]
        said.append(run.everything()["0 orders"])
    assert said[0] == said[1]
