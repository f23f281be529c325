"""Lines taken in chunks and threads: the same tables, rejects and sentences as of one line after the other."""

from __future__ import annotations

import gzip
from itertools import islice
from random import Random

import pytest

from cdcavro.engine.machine import COMPILED
from cdcavro.errors import FileError
from cdcavro.files.lines import Chunk
from cdcavro.table.table_folder import TablesFolder
from cdcavro.table.tables import Tables
from cdcavro.table.writing.line_typer import LineTyper
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.wire.formats import FORMATS
from support.messages import ROW_FORMATS
from support.tables_trial import RUNS, Numbered, compare, evolving, one_by_one, run, stream, write

TYPES = {"id": "int", "a": "int"}


def inserts(made: Numbered, count: int, table: str = "t") -> list[bytes]:
    """Return inserts into a table of two columns."""
    return [made.row(table, {"id": str(i), "a": "7"}, TYPES) for i in range(count)]


def taken_if_compiled(taken: int, least: int) -> bool:
    """Say whether so many lines were taken in chunks; where nothing is compiled, none is."""
    return taken >= least if COMPILED else taken == 0


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_any_threads_and_chunks_give_what_one_line_after_the_other_gives(format, tmp_path):
    """Rows, statements, halves, and what is damaged, in each format: the folder, the rejects, and what is said."""
    random = Random(format)
    file = write(tmp_path / "in", stream(format, random, 400), random.choice((b"", b"\n")))
    found, taken = compare(file, "--from", format)
    assert found.rejects
    assert taken_if_compiled(taken, 10 if format in ROW_FORMATS else 0)


@pytest.mark.slow
@pytest.mark.parametrize(("tables", "edits", "policy"), [(1, 0.004, "keep"), (4, 0.01, "reject"), (3, 0.1, "keep")])
def test_tables_that_change_all_the_time_are_as_of_one_line_after_the_other(tables, edits, policy, tmp_path):
    """They are altered, emptied, renamed and dropped, and new columns and misfits come without a word."""
    file = write(tmp_path / "in", evolving(Random(tables), 900, tables, edits))
    _, taken = compare(file, "--on-misfit", policy)
    assert taken_if_compiled(taken, 1)


@pytest.mark.slow
def test_more_tables_than_files_are_open_have_the_same_parts(tmp_path):
    """Which file is closed for another depends on the order of all rows."""
    made = Numbered()
    tables = [table for _ in range(4) for table in range(140)]
    file = write(tmp_path / "in", [one for table in tables for one in inserts(made, 2, f"t{table}")])
    found, taken = compare(file)
    assert "s.t0/v1-4.avro" in found.files
    assert taken_if_compiled(taken, 1000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("type", "statement"),
    [("ERASE", "DROP TABLE t"), ("RENAME", "RENAME TABLE t TO u")],
)
def test_rows_behind_a_statement_are_not_those_of_the_table_before(type, statement, tmp_path):
    """They were made before the statement was read, and are thrown away."""
    made = Numbered()
    lines = [*inserts(made, 300), made.statement("t", type, statement), *inserts(made, 600)]
    found, taken = compare(write(tmp_path / "in", lines), "--from", "canal")
    assert len([name for name in found.files if name.endswith(".avro")]) == 2
    assert taken_if_compiled(taken, 800)


def test_a_misfit_that_is_an_error_ends_the_run_at_the_same_line(tmp_path):
    """Although the lines behind it were begun."""
    made = Numbered()
    bad = made.row("t", {"id": "1", "a": "x"}, TYPES)
    file = write(tmp_path / "in", [*inserts(made, 400), bad, *inserts(made, 400), bad])
    found, taken = compare(file, "--on-misfit", "error")
    assert (found.code, found.files) == (2, {})
    assert f"{file}:401: canal: $.after.a" in found.stderr
    assert taken_if_compiled(taken, 500)


@pytest.mark.slow
def test_a_row_that_may_be_a_half_stands_before_the_next_row_of_its_table(tmp_path):
    """That one settles it, so it goes the exact way although the engine has taken it."""
    insert = b'{"id":%d,"v":"a","_sequence_id_":"%d","_operation_type_":"I","_source_table_":"t","_before_image_":"N","_after_image_":"Y"}'
    say_nothing = (
        b'{"id":%d,"v":"a","_sequence_id_":"%d","_source_table_":"t","_before_image_":"Y","_after_image_":"N"}'
    )
    lines = [(say_nothing if i % 200 == 150 else insert) % (i, 17000000000000000000000000000 + i) for i in range(800)]
    found, taken = compare(write(tmp_path / "in", lines), "--from", "datahub_tuple")
    assert "read 800 = typed 800" in found.stdout
    assert taken_if_compiled(taken, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 1, 400, -1])
def test_what_is_at_the_edge_of_a_chunk_is_rejected_with_its_line(place, tmp_path):
    """Also if nothing, or only a line end, stands before or behind it."""
    lines = inserts(Numbered(), 801)
    size = len(b"\n".join(lines[:400])) + 1
    for odd in (b"", b"{", b"\xff", lines[place][:-9]):
        lines[place] = odd
        for end in (b"", b"\n"):
            file = write(tmp_path / "in", lines, end)
            wanted = one_by_one(file)
            for near in (size - 1, size, size + 1):
                assert run(file, jobs=2, size=near) == wanted


@pytest.mark.slow
def test_text_from_gzip_and_a_file_that_ends_too_early_are_the_same_for_any_threads(tmp_path):
    """An error of reading comes behind what was said about the lines before it."""
    packed = gzip.compress(b"\n".join([*inserts(Numbered(), 2000), b"{"]) + b"\n" + b" " * 600_000)
    whole, damaged = tmp_path / "whole.gz", tmp_path / "damaged.gz"
    whole.write_bytes(packed)
    damaged.write_bytes(packed[:-9])
    wanted = one_by_one(whole)
    assert "read 2,002 = typed 2,000" in wanted.stdout
    for jobs, size in RUNS:
        assert run(whole, jobs=jobs, size=size) == wanted
    found = [run(damaged, jobs=jobs) for jobs in (1, 2, 5)]
    assert found[0].code == 2
    assert "gzip file" in found[0].stderr
    assert found == 3 * found[:1]


def taker(folder: TablesFolder, ahead: int) -> LineTyper:
    """Return what takes lines, so many chunks ahead."""
    typer = MessageTyper("canal", Tables())
    return LineTyper(typer, folder, file="a", begin=lambda work: work, ahead=ahead)


@pytest.mark.parametrize("ahead", [0, 3])
def test_only_a_few_chunks_are_read_before_their_turn(ahead, tmp_path):
    """However many there are."""
    read = []

    def chunks():
        for number in range(100):
            read.append(number)
            yield Chunk(b"1\n2\n")

    with TablesFolder(str(tmp_path / "out")) as folder:
        left = taker(folder, ahead).left(chunks(), lambda: True)
        lines = list(islice(left, 20))
    assert [line.number for line in lines] == list(range(1, 21))
    assert len(read) == 10 + ahead


def test_an_error_of_reading_comes_behind_the_lines_that_were_read(tmp_path):
    """They are left first, in their order."""

    def chunks():
        yield Chunk(b"1\n2\n")
        yield Chunk(b"3", b"4")
        raise FileError("a", "b", "c")

    with TablesFolder(str(tmp_path / "out")) as folder:
        left = taker(folder, 9).left(chunks(), lambda: True)
        assert [(line.number, line.raw) for line in islice(left, 3)] == [(1, b"1"), (2, b"2"), (3, b"34")]
        with pytest.raises(FileError):
            next(left)
