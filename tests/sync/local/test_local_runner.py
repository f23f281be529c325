"""Local runner: its batches, one behind another, from a checkpoint; what is held in memory, what fails, and how it ends."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import cdcavro
from cdcavro.errors import FileError, JobError
from cdcavro.lake.account import read_account
from cdcavro.lake.lakes import DeltaLake
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.sync.batches import BatchReport, Lag
from cdcavro.sync.conversion.rounds import Outcomes, convert
from cdcavro.sync.local.local_runner import Lane, LocalBatch, seconds_of
from cdcavro.sync.outputs.reject_places import replay
from cdcavro.sync.reading.file_source import FileReader
from cdcavro.sync.settings import Chosen, Formats, Settings
from cdcavro.sync.sources import Files, Kafka
from cdcavro.wire.formats import get_format
from support import canal_packets, local_pipelines
from support.dts_records import packed, record, value
from support.headed_records import check_pipeline
from support.jobs import DELTA, ICEBERG, local_job
from support.kafka_server import Broker, Record
from support.messages import canal
from support.moved_keys import MOVES, format_of, moving
from support.roundtrip import error_of
from support.rows_trial import ZONE
from support.shop_tables import MESSAGES
from support.task_batches import batch_of

CANAL = Formats("canal")
SOON = "1 millisecond"


def row(id: int, **more: Any) -> bytes:
    """Return an inserted row of Canal's."""
    return canal("INSERT", [{"id": str(id), "a": "1"}], id=id, **more)


@pytest.mark.slow
def test_what_comes_while_it_runs_is_read_until_it_is_stopped(job):
    """Each batch is told when it begins, with what it reads, and when it is done; a batch begins none after the stop."""
    made, stop = job(), threading.Event()
    begun: list[tuple[int, Lag | None]] = []
    done: list[int] = []

    def say(report: BatchReport) -> None:
        done.append(report.number)
        if report.number == 2:
            stop.set()
        made.send(row(report.number + 2))

    made.send(row(1))
    made.start(made.pipeline(), every=SOON, say=say, begin=lambda *one: begun.append(one), stop=stop)
    assert begun == [(number, Lag(1, "files")) for number in range(3)]
    assert done == [0, 1, 2]
    assert made.rows("d.t", "id") == [(1,), (2,), (3,)]
    (report,) = made.run()
    assert (report.number, made.rows("d.t", "id")) == (3, [(1,), (2,), (3,), (4,)])


def test_rows_that_wait_for_a_later_batch_are_written_when_it_is_stopped(job):
    """No batch comes that they could wait for."""
    made, stop, reports = job(), threading.Event(), []

    def say(report: BatchReport) -> None:
        reports.append(report)
        stop.set()

    made.send(row(1))
    made.run(merge_every=10)
    made.send(row(2))
    made.start(made.pipeline(merge_every=10), every=SOON, say=say, stop=stop)
    assert [report.counts["read"] for report in reports] == [1, 0]
    assert made.pipeline().waiting == 0
    assert made.rows("d.t", "id") == [(1,), (2,)]


@pytest.mark.slow
def test_rows_without_their_envelope_are_those_that_their_records_leave(job):
    """Their key is that of the records, their table that of the topic, and a record without a value is a delete."""

    def record(offset: int, key: int, value: str, partition: int = 0) -> bytes:
        head = f'{{"topic":"prefix.d.t","partition":{partition},"offset":{offset},'
        return f'{head}"key":{{"id":{key}}},"value":{value}}}'.encode()

    made = job()
    own: dict[str, Any] = {"formats": Formats("debezium_flat"), "options": {"table": "@topic.database.table"}}
    made.send(record(0, 1, '{"id":1,"a":"x"}'), record(1, 2, '{"id":2,"a":"x","__deleted":"false"}'))
    made.send(record(0, 3, '{"id":3,"a":"x","__op":"r","__lsn":7}', 1), record(1, 3, "null", 1))
    assert [(report.counts["written"], report.counts["tombstones"]) for report in made.run(**own)] == [(2, 0)] * 2
    assert made.rows("d.t", "id", "a") == [("1", "x"), ("2", "x")]
    made.send(record(2, 1, "null"), record(3, 2, '{"id":2,"a":"y","__op":"u"}'), record(2, 3, '{"id":3,"a":"z"}', 1))
    made.run(**own)
    assert made.rows("d.t", "id", "a") == [("2", "y"), ("3", "z")]


@pytest.mark.slow
@pytest.mark.parametrize("cut", [4, 1000])
def test_rows_of_which_a_part_was_logged_keep_what_they_had(job, cut):
    """Updates list what they state, deletes the key, and a row comes whole at first; however the stream is cut."""
    made, chance, rows, messages = job(), Random(cut), {}, []
    for i in range(60):
        key, names = str(chance.randrange(9)), chance.sample(["a", "b", "c"], chance.randrange(1, 4))
        if key not in rows and (not i or chance.random() < 0.7):
            rows[key] = {"id": key, **{name: str(chance.randrange(100)) for name in "abc"}}
            messages.append(canal("INSERT", [rows[key]], id=i))
        elif key in rows and chance.random() < 0.2:
            del rows[key]
            messages.append(canal("DELETE", [{"id": key}], id=i))
        else:
            part = {"id": key, **{name: str(chance.randrange(100)) for name in names}}
            rows[key] = dict.fromkeys("abc") | rows.get(key, {}) | part
            messages.append(canal("UPDATE", [part], id=i, old=[dict.fromkeys(names, "0")]))
    for first in range(0, len(messages), cut):
        made.send(*messages[first : first + cut])
        made.run(formats=Formats("canal"))
    wanted = [tuple(None if row[name] is None else int(row[name]) for name in ("id", *"abc")) for row in rows.values()]
    assert made.rows("d.t", "id", "a", "b", "c") == sorted(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["", "off"])
def test_no_value_of_a_row_that_moves_to_another_key_is_lost(tmp_path: Path, engine: str):
    """By the engine and exactly: a part of it is a reject of a current state, for tables of each format."""
    patterns, names = {}, [name for name in MOVES if name != "datahub_blob"]
    for i, name in enumerate(names):
        (insert, part), (_, whole) = moving(name, "note"), moving(name)
        for table, message in ((f"p{i}", part), (f"w{i}", whole)):
            lines = (_of_table(one, table) for one in (insert, insert, message))
            (tmp_path / "in").mkdir(exist_ok=True)
            (tmp_path / "in" / f"{table}.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
            patterns[f"{table}.jsonl"] = format_of(name)
    formats = "".join(f'"*/{pattern}" = "{format}"\n' for pattern, format in patterns.items())
    config = f'state = "state"\n[source]\nfiles = "in"\n[lake]\ndelta = "lake"\n[format]\n{formats}'
    (tmp_path / "sync.toml").write_text(config)
    command = [sys.executable, "-m", "cdcavro", "sync", "--config", "sync.toml", "--local", "--once", "--quiet"]
    own = os.environ | {"CDCAVRO_ENGINE": engine}
    done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
    assert f"read {6 * len(names)} = written {5 * len(names)} + rejected {len(names)}" in done.stdout, done.stderr
    for i, name in enumerate(names):
        moved = _lake_rows(tmp_path / "lake" / "d" / f"w{i}")
        assert moved == [("8", "1", "long")], name
        kept = _lake_rows(tmp_path / "lake" / "d" / f"p{i}")
        assert kept == [("7", "1", "long")], name


def _of_table(message: bytes, table: str) -> bytes:
    pairs = [(b'"t"', f'"{table}"'), (b'"d.t"', f'"d.{table}"')]
    for old, new in pairs:
        message = message.replace(b": " + old, f": {new}".encode())
    return message


def _lake_rows(folder: Path) -> list[tuple[str, ...]]:
    rows = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
    return [tuple(str(row.get(name)) for name in ("id", "n", "note")) for row in rows]


@pytest.mark.slow
def test_messages_that_are_bytes_are_lines_of_base64_or_their_json(job):
    """Of files; statements and rows of one message, too. What is neither is a reject."""
    made, columns = job(), {"id": 8, "a": 253}
    create = record(operation="DDL", objectName="d", afterImages="CREATE TABLE t (id BIGINT PRIMARY KEY, a VARCHAR(9))")
    own = {"objectName": "d.t", "tags": {"pk_uk_info": '{"PRIMARY":["id"]}'}}
    image = [value("Integer", precision=8, value="7"), value("Character", charset="utf8mb4", value="ü".encode())]
    insert = packed(record(columns, id=2_000_000, afterImages=image, **own))
    delete = packed(record(columns, id=2_000_001, operation="DELETE", beforeImages=image, **own))
    made.send(b64encode(packed(create)), get_format("dts_avro").text_of(insert), b64encode(b"\x00" * 60))
    (report,) = made.run(formats=Formats("dts_avro"))
    assert (made.rows("d.t", "id", "a"), report.counts["rejected"]) == ([(7, "ü")], 1)
    made.send(b64encode(delete), b64encode(canal_packets.packet(canal_packets.UPDATE)))
    made.run()
    assert made.rows("d.t", "id") == []
    assert made.rows("shop.t", "id", "price") == [(7, Decimal("1.30"))]


@pytest.mark.slow
@pytest.mark.parametrize("sql", ["CREATE INDEX i ON t (id)", "ANALYZE TABLE t", "ALTER TABLE t ADD b INT"])
def test_rows_beside_a_statement_in_one_message_are_written(job, sql: str):
    """Before it and behind it, in a packet of Canal that is a batch of its own; also if it changes no table."""
    made, places = job(), iter(range(100, 1_000, 100))

    def insert(id: str) -> Any:
        own = canal_packets.made("RowData", afterColumns=[canal_packets.column(0, "id", id, "int", isKey=True)])
        return canal_packets.rows("INSERT", own, offset=next(places))

    def statement(text: str) -> Any:
        change = canal_packets.made("RowChange", eventType="ALTER", isDdl=True, sql=text, ddlSchemaName="shop")
        return canal_packets.entry(next(places), change, "ROWDATA", tableName="t")

    begin = [statement("CREATE TABLE t (id INT PRIMARY KEY)"), insert("1")]
    for entries in (begin, [insert("2"), statement(sql), insert("3")], [insert("4")]):
        made.send(b64encode(canal_packets.packet(*entries)))
        made.run(formats=Formats("canal_protobuf"))
    assert made.rows("shop.t", "id") == [(1,), (2,), (3,), (4,)]


@pytest.mark.jvm
def test_messages_that_are_bytes_are_read_from_kafka_as_they_are(kafka: Broker, job):
    """Of two topics, each with its format; a value that is cut off is a reject with its bytes."""
    kafka.create("bytes.dts")
    kafka.create("bytes.canal")
    image = [value("Integer", precision=8, value="7")]
    insert = packed(record({"id": 8}, afterImages=image, objectName="d.t", tags={"pk_uk_info": '{"PRIMARY":["id"]}'}))
    update = canal_packets.packet(canal_packets.UPDATE)
    values = {"bytes.dts": (insert, insert[:-9]), "bytes.canal": (update,)}
    kafka.send([Record(topic, 0, None, one) for topic, found in values.items() for one in found])
    made = job(source=Kafka(kafka.servers, ("bytes.dts", "bytes.canal")))
    formats = Formats({"bytes.canal": "canal_protobuf", "*": "dts_avro"})
    (report,) = made.run(formats=formats)
    assert (made.rows("d.t", "id"), made.rows("shop.t", "price")) == ([("7",)], [(Decimal("1.30"),)])
    assert (report.counts["rejected"], report.rejects[0].format) == (1, "dts_avro")


@pytest.mark.jvm
def test_what_headers_state_is_read_with_their_records(kafka: Broker, job):
    """Operation, table, time and position, as members would; rejects keep them, and are read again with them."""
    kafka.create("headed.local")
    check_pipeline(job(source=Kafka(kafka.servers, ("headed.local",))), kafka, "headed.local")


@pytest.mark.slow
def test_a_batch_that_was_planned_and_is_not_committed_is_run_again_with_the_same_files(job):
    """As if the process had been killed in it: what came meanwhile is in the next one."""

    class Killed(BaseException):
        pass

    def die(number: int, _: object) -> None:
        assert number == 1
        raise Killed

    made = job(is_changelog=True)
    made.send(row(1))
    made.run()
    made.send(row(2))
    with pytest.raises(Killed):
        made.start(made.pipeline(), once=True, begin=die)
    made.send(row(3))
    made.send(row(4))
    reports = made.run()
    facts = [(report.number, report.counts["read"], report.lag) for report in reports]
    # What is left is looked for before the batch is repeated: who watches the lag takes 0 for a pipeline that is up to date.
    assert facts == [(1, 1, (2, "files")), (2, 1, (1, "files")), (3, 1, (0, "files"))]
    assert [point.lag for point in read_account(made.folder / "state").points] == [0, 2, 1, 0]
    made.run_again()
    assert made.rows("d.t", "id", suffix="changes") == [(1,), (2,), (3,), (4,)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_what_does_not_fit_in_memory_goes_to_files_and_is_the_same(tmp_path: Path, kind: str):
    """They are gone when the batch is done."""
    lakes: list[Any] = []
    for room in (1, 1 << 30):
        folder = tmp_path / str(room)
        folder.mkdir()
        made = local_job(folder, kind, is_changelog=True)
        made.send(*MESSAGES["canal"](), b"no message")
        reports: list[BatchReport] = []
        made.start(made.pipeline(formats=CANAL), once=True, room=room, say=reports.append)
        spill = folder / "state" / "spill"
        assert spill.exists() is (room == 1)
        assert room > 1 or not list(spill.iterdir())
        made.check_shop("canal")
        names = [one for one in sorted(reports[0].operations) if one != "shop.nopk2"]
        lakes.append([made.rows(_quoted(name), "hex(_cdc_key)", "_cdc_op", suffix="changes") for name in names])
        assert (reports[0].counts["rejected"], reports[0].rejects[0].example[:13]) == (1, "expected JSON")
    assert lakes[0] == lakes[1]
    assert sum(map(len, lakes[0])) > 150


@pytest.mark.slow
def test_files_that_a_killed_run_has_left_go_with_the_next_run(job):
    """They would fill the disk."""
    made = job()
    left = made.folder / "state" / "spill" / "batch-killed"
    left.mkdir(parents=True)
    (left / "rows.arrow").write_bytes(b"x")
    made.send(*MESSAGES["canal"]()[:20])
    made.run(formats=CANAL)
    assert not left.exists()


def _quoted(name: str) -> str:
    return ".".join(f'"{part}"' for part in name.split(".", 1))


def _batch(folder: Path, spill: Path, **how: int) -> tuple[LocalBatch, Outcomes]:
    reader, settings = FileReader(str(folder)), Settings(formats=CANAL, options={"zone": ZONE})
    lanes = [Lane(Path(one.path).stat().st_size, partial(reader.batches, one)) for one in reader.new({})]
    batch = LocalBatch(lanes, spill, **how)
    return batch, convert(batch.convert, TypedRows(settings.tables()), settings, is_reduced=False)[0]


@pytest.mark.slow
def test_lanes_are_converted_by_several_threads_into_the_same_rows(job, tmp_path: Path):
    """Each lane by one of them; in memory and in files."""
    made, messages = job(), MESSAGES["canal"]()
    for i in range(0, len(messages), 20):
        made.send(b"\xef\xbb\xbf" + messages[i], *messages[i + 1 : i + 20], b"{")
    found = []
    for threads, room in ((1, 1 << 30), (4, 1 << 30), (4, 1)):
        batch, outcomes = _batch(made.folder / "in", tmp_path / "spill", threads=threads, room=room)
        rows = {
            name: Counter(map(repr, outcomes.store.rows(name, 0).read().to_pylist()))
            for name in outcomes.names.values()
        }
        rejects = sorted((one["file"], one["line"]) for one in outcomes.store.rejects().to_pylist())
        found.append((rows, rejects, dict(outcomes.counts), batch.marks([])))
        outcomes.store.free()
    assert found[0] == found[1] == found[2]
    assert len(found[0][1]) == len(found[0][3]) == -(-len(messages) // 20)
    assert sum(sum(rows.values()) for rows in found[0][0].values()) > 150


def test_a_fault_of_one_thread_stops_the_batch(job):
    """A file that is damaged: what the others did is given up, and their files are removed."""
    made = job()
    for i in range(1, 5):
        made.send(row(i))
    (made.folder / "in" / "0002.jsonl").rename(made.folder / "in" / "0002.zst")
    spill = made.folder / "spill"
    with pytest.raises(JobError, match=r"0002[.]zst"):
        _batch(made.folder / "in", spill, threads=4, room=1)
    assert not spill.exists() or not list(spill.iterdir())


@pytest.mark.parametrize("ends_waits", [True, False])
def test_an_interrupt_ends_all_threads_of_a_batch_long_before_its_lanes_end(tmp_path: Path, ends_waits: bool):
    """As an error of one of them does: what is left to read may take minutes. Libraries change what a signal ends."""
    read, many = Counter[int](), 1_000

    def batches(partition: int, _: Any) -> Iterator[pa.RecordBatch]:
        for i in range(many):
            if (partition, i) == (1, 10):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            time.sleep(0.002)
            read[partition] += 1
            yield batch_of([(None, row(i))], first=i, partition=partition)

    lanes, settings = [Lane(1, partial(batches, i)) for i in range(2)], Settings(formats=CANAL)
    batch = LocalBatch(lanes, tmp_path / "spill", threads=2)
    # Tests that a shell's `&` started ignore it.
    held = signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.siginterrupt(signal.SIGINT, ends_waits)
    try:
        with pytest.raises(KeyboardInterrupt):
            convert(batch.convert, TypedRows(settings.tables()), settings, is_reduced=False)
    finally:
        signal.siginterrupt(signal.SIGINT, True)
        signal.signal(signal.SIGINT, held)
    assert 10 < read.total() < many


@pytest.mark.parametrize("name", ["spill", "batches", "checkpoint", "rejects", "account.json"])
def test_a_place_in_the_state_that_is_something_else_is_named(job, name: str):
    """Nothing is passed over; it goes on where it stopped once that is out of the way."""
    made = job()
    made.send(row(1), b"no message")
    place = made.folder / "state" / name
    if name == "account.json":
        place.mkdir(parents=True)
    else:
        place.parent.mkdir()
        place.touch()
    run = partial(made.start, made.pipeline(formats=CANAL), once=True, room=1)
    with pytest.raises((OSError, FileError)) as caught:
        run()
    assert str(place) in str(caught.value)
    place.rmdir() if place.is_dir() else place.unlink()
    run()
    assert made.rows("d.t", "id") == [(1,)]
    assert made.run() == []


def test_rows_wait_for_a_lake_that_cannot_be_written(job):
    """It is said why, nothing is passed over, and they are written once it can be."""
    made = job()
    made.send(row(1))
    (made.folder / "lake").write_text("no folder")
    (report,) = made.run()
    assert "Not a directory" in report.waiting["d.t"]
    assert made.pipeline().waiting == 1
    (made.folder / "lake").unlink()
    made.send(row(2))
    (report,) = made.run()
    assert (report.waiting, made.pipeline().waiting) == ({}, 0)
    assert made.rows("d.t", "id") == [(1,), (2,)]


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "said"), [(20_000, "batch 0 cannot be written"), (100, "state/job.json")])
def test_a_disk_that_takes_no_more_is_a_sentence(job, limit: int, said: str):
    """Wherever it is met, and nothing is lost: a limit on the size of files stands for it."""
    made = job()
    made.send(*[row(id, sql=os.urandom(20).hex()) for id in range(1, 2_000)])
    flags = ("--files", "in", "--format", "canal", "--delta", "lake", "--state", "state", "--local", "--once")
    done = subprocess.run(
        [sys.executable, "-m", "cdcavro", "sync", *flags],
        cwd=made.folder,
        # Python would leave compiled modules that are cut off at the limit, by which no later process starts.
        env={**os.environ, "PYTHONPATH": str(Path(cdcavro.__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    last = done.stderr.splitlines()[-1]
    assert said in last
    assert "File too large" in last
    assert "Traceback" not in done.stderr
    (report,) = made.run()
    assert report.counts["written"] == 1_999
    assert made.rows("d.t", "count(*)", "count(DISTINCT id)") == [(1_999, 1_999)]


@pytest.mark.parametrize("is_known", [False, True])
def test_a_name_that_is_too_long_is_the_reason_of_its_reject(job, is_known: bool):
    """Of a table or a column, whether the table is known or not."""
    made, long = job(), "n" * 256
    made.send(
        *[row(1)] * is_known, row(2, table=long), canal("INSERT", [{"id": "3", long: "1"}], id=3), row(4, table="ok")
    )
    reports = made.run(formats=CANAL)
    assert sum(report.counts["written"] for report in reports) == 1 + is_known
    reasons = [one.reason for report in reports for one in report.rejects]
    assert len(reasons) == 2
    assert all(re.search(r": the name 'n+\.\.\.' has 256 characters, more than 255$", one) for one in reasons)


def test_a_batch_without_anything_to_read_is_none(job):
    """Nor is a file without lines forgotten; one that comes later is read."""
    made = job()
    made.send(row(1))
    (made.folder / "in" / "empty").touch()
    assert [report.counts["read"] for report in made.run()] in ([1, 0], [0, 1])
    assert made.run() == []
    made.send(row(2))
    assert [report.counts["read"] for report in made.run()] == [1]


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [
        ("10 seconds", 10),
        ("1 minute 2.5 seconds", 62.5),
        ("500 milliseconds", 0.5),
        ("1 Day", 86_400),
        ("2 weeks", 1_209_600),
    ],
)
def test_intervals_are_sparks(interval: str, seconds: float):
    """In its words."""
    assert seconds_of(interval) == seconds


SHOWN = {
    "soft": ("id", "a", "_cdc_is_deleted", "epoch(_cdc_deleted_at)"),
    "history": ("id", "a", "epoch(_cdc_from)", "epoch(_cdc_to)"),
}
KEPT = {
    "soft": [(1, 2, True, 4), (2, 3, False, None), (3, 2, True, 5)],
    "history": [(1, 1, 1, 2), (1, 2, 2, 4), (2, 3, 6, None), (3, 2, 4, 5)],
}


@pytest.mark.slow
@pytest.mark.parametrize("form", SHOWN)
def test_a_form_that_keeps_versions_has_the_same_rows_however_its_stream_is_cut(job, form):
    """A row that moves leaves its key; a batch that is run again changes nothing."""
    messages = [
        canal("INSERT", [{"id": "1", "a": "1"}], id=1, es=1000),
        canal("UPDATE", [{"id": "1", "a": "2"}], id=2, es=2000, old=[{"a": "1"}]),
        canal("UPDATE", [{"id": "3", "a": "2"}], id=3, es=4000, old=[{"id": "1"}]),
        canal("TRUNCATE", [], id=4, es=5000, isDdl=True, sql="TRUNCATE TABLE t"),
        canal("INSERT", [{"id": "2", "a": "3"}], id=5, es=6000),
    ]
    whole = job(form=form)
    whole.send(*messages)
    whole.run()
    assert whole.rows("d.t", *SHOWN[form]) == KEPT[form]
    whole.run_again()
    assert whole.rows("d.t", *SHOWN[form]) == KEPT[form]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DELTA, ICEBERG])
def test_a_table_has_the_form_of_the_first_rule_that_fits_it(job, kind):
    """Every change is kept for those that need it; the others are as ever, and keep their form when they are renamed."""
    forms = (("D.t", "history"), ("d.s*", "soft"), ("*.t", "current"))
    made = job(kind, table_forms=forms)
    for table in ("t", "s", "u"):
        made.send(
            canal("INSERT", [{"id": "1", "a": "1"}], id=1, es=1000, table=table),
            canal("UPDATE", [{"id": "1", "a": "2"}], id=2, es=2000, table=table, old=[{"a": "1"}]),
            canal("DELETE", [{"id": "1", "a": "2"}], id=3, es=4000, table=table),
            canal("INSERT", [{"id": "2", "a": "3"}], id=4, es=5000, table=table),
        )
    made.run()
    assert made.rows("d.t", *SHOWN["history"]) == [(1, 1, 1, 2), (1, 2, 2, 4), (2, 3, 5, None)]
    assert made.rows("d.s", *SHOWN["soft"]) == [(1, 2, True, 4), (2, 3, False, None)]
    assert made.rows("d.u", "id", "a") == [(2, 3)]
    rename = "RENAME TABLE t TO v, s TO t, u TO w"
    made.send(
        canal("RENAME", [], id=5, es=6000, isDdl=True, table="t", sql=rename),
        canal("UPDATE", [{"id": "2", "a": "4"}], id=6, es=7000, table="v", old=[{"a": "3"}]),
        canal("DELETE", [{"id": "2", "a": "3"}], id=7, es=8000, table="t"),
        canal("INSERT", [{"id": "3", "a": "3"}], id=8, es=9000, table="w"),
    )
    (report,) = made.run()
    assert report.waiting == {}
    assert made.rows("d.t", *SHOWN["history"])[2:] == [(2, 3, 5, 7), (2, 4, 7, None)]
    assert made.rows("d.s", *SHOWN["soft"]) == [(1, 2, True, 4), (2, 3, True, 8)]
    assert made.rows("d.u", "id", "a") == [(2, 3), (3, 3)]


@pytest.mark.slow
def test_a_table_that_gets_another_form_waits_and_one_whose_changes_are_gone_stops_the_stream(job):
    """Of rows that waited, only the last change of each key was kept: a history of them would be less than it says."""
    made = job()
    made.send(row(1, es=1000))
    made.run()
    made.lake["table_forms"] = (("d.t", "history"),)
    made.send(row(2, es=2000))
    (report,) = made.run()
    assert 'was begun with form = "current", which cannot become "history"' in report.waiting["d.t"]
    made.lake["table_forms"] = ()
    made.send(row(3, es=3000))
    made.run()
    assert made.rows("d.t", "id") == [(1,), (2,), (3,)]
    made.send(row(1, es=3000, table="u"), row(1, es=4000, table="u"))
    # Its rows wait, as rejects go where it would be.
    (report,) = made.run(rejects_table="d.u")
    assert [*report.waiting] == ["d.u"]
    made.lake["table_forms"] = (("d.u", "history"),)
    made.send(row(1, es=5000, table="u"))
    with pytest.raises(JobError, match="have only the last change of each key, and changelog or form now needs all"):
        made.run()


def test_a_state_of_files_is_refused_where_topics_are_read_and_the_other_way(job):
    """Before Kafka is asked for anything, and before Java starts."""
    made = job()
    made.send(row(1, es=1000))
    made.run()
    topics = replace(made.pipeline(), source=Kafka("127.0.0.1:1", ("shop",)))
    for check in (topics.check_free, topics.check, lambda: topics.run(once=True)):
        assert error_of(check) == (
            f"{made.folder}/state: expected the state of a pipeline that reads topics, got that of one that reads files"
        )
    checkpoint = made.folder / "state" / "checkpoint"
    (checkpoint / "offsets" / "0").write_text('v1\n{}\n{"shop":{"0":7}}\n-')
    with pytest.raises(FileError, match="that reads files, got that of one that reads topics"):
        made.run()


@pytest.mark.slow
def test_a_lake_is_the_same_by_any_path_to_its_folder(job):
    """A state is bound to the folder, not to how its path is written."""
    made = job()
    made.send(row(1, es=1000))
    made.run()
    (made.folder / "link").symlink_to(made.folder)
    for path in ("state/../lake", "link/lake"):
        same = made.pipeline()
        made.send(row(made.files + 1, es=2000))
        replace(same, sink=replace(same.sink, sink=DeltaLake(f"{made.folder}/{path}"))).run(once=True)
    assert made.rows("d.t", "id") == [(1,), (2,), (3,)]
    other = replace(same, sink=replace(same.sink, sink=DeltaLake(f"{made.folder}/lake/../other")))
    with pytest.raises(FileError, match=r"the state of a pipeline into Delta Lake at \S+/other, got that of one into"):
        other.run(once=True)


def test_a_table_whose_key_changed_says_how_to_go_on(job):
    """Its rows are pending until it is reset."""
    made = job()
    made.send(row(1, es=1000))
    made.send(
        canal("ALTER", [], id=2, isDdl=True, sql="ALTER TABLE d.t DROP PRIMARY KEY, ADD PRIMARY KEY (a)", es=2000)
    )
    made.send(canal("INSERT", [{"id": "2", "a": "1"}], id=3, es=3000, pkNames=["a"]))
    *_, last = made.run(formats=CANAL)
    said = "under which older rows are not found: `cdcavro sync reset d.t` begins the table again with the new key"
    assert last.waiting["d.t"].endswith(said)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 11])
def test_a_state_that_is_moved_with_its_lake_goes_on(tmp_path: Path, count: int):
    """Each message is read once, rejects that were read again too; and again from the next folder."""
    (tmp_path / "first").mkdir()
    sender, made, ids = local_job(tmp_path), local_job(tmp_path / "first", is_changelog=True), list[int]()
    made.source = Files(str(tmp_path / "in"), most=1)
    for turn, name in enumerate(("first", "second", "a é")):
        if turn:
            made.folder = made.folder.rename(tmp_path / name)
            made.sink = DeltaLake(f"{made.folder}/lake")
            made.check()
        for _ in range(count):
            ids.append(len(ids) + 1)
            sender.send(row(ids[-1], es=1000 + len(ids)))
        sender.send(b"{")
        counts = Counter[str]()
        for report in made.run():
            counts.update(report.counts)
        assert (counts["read"], counts["rejected"]) == (count + 1, 1)
        replay(made.folder / "state" / "rejects", made.folder / "state" / "replay")
        assert [report.counts["rejected"] for report in made.run()] == [turn + 1]
        for suffix in ("", "changes"):
            assert made.rows("d.t", "id", suffix=suffix) == [(one,) for one in ids]


def test_a_pipeline_that_is_moved_with_the_files_that_it_reads_is_refused(tmp_path: Path):
    """Changes of files are ordered by the paths of these: rows in a folder with a smaller name would count as older."""
    (tmp_path / "b").mkdir()
    made = local_job(tmp_path / "b")
    made.send(row(1, es=1000))
    made.run()
    made.folder = made.folder.rename(tmp_path / "a")
    made.sink = DeltaLake(f"{made.folder}/lake")
    file = tmp_path / "b" / "in" / "0000.jsonl"
    said = f"files that were read, such as {file}, are ordered by their paths: mount all where it was"
    for work in (made.check, made.run):
        assert error_of(work).endswith(said)
    assert not (tmp_path / "b").exists()
    made.folder = made.folder.rename(tmp_path / "b")
    made.sink = DeltaLake(f"{made.folder}/lake")
    assert made.run() == []


@pytest.mark.parametrize("what", ["lake", "state", "copy", "other"])
def test_a_lake_that_is_moved_without_its_state_is_refused_until_a_link_says_so(tmp_path: Path, what: str):
    """As is a state beside a copy of its lake, or another folder; nothing is read."""
    (tmp_path / "old").mkdir()
    sender, made = local_job(tmp_path), local_job(tmp_path / "old")
    made.source = Files(str(tmp_path / "in"), most=1)
    sender.send(row(1, es=1000))
    made.run()
    old, new = made.folder / "lake", tmp_path / "new" / "lake"
    if what == "copy":
        shutil.copytree(made.folder, new.parent)
    else:
        new.parent.mkdir()
        (old if what == "lake" else made.folder / "state").rename(new.parent / ("lake" if what == "lake" else "state"))
    if what in ("copy", "state", "other"):
        made.state = str(new.parent / "state")
    made.sink = DeltaLake(str(new))
    if what == "other":
        shutil.rmtree(old)
    sender.send(row(2, es=2000))
    with pytest.raises(FileError) as refused:
        made.run()
    hint = f": if that was moved here, make a link for one run, ln -s {new} {old}" if what == "lake" else ""
    said = f"expected the state of a pipeline into Delta Lake at {new}, got that of one into Delta Lake at {old}{hint}"
    assert str(refused.value) == f"{made.state or made.folder / 'state'}: {said}"
    assert error_of(made.check).endswith(said)
    if what == "lake":
        old.symlink_to(new)
        made.run()
        old.unlink()
        sender.send(row(3, es=3000))
        made.run()
        assert made.rows("d.t", "id") == [(1,), (2,), (3,)]


@pytest.mark.slow
def test_a_form_that_is_changed_is_refused_before_anything_is_read(job):
    """The state says which one it is; whatever else is given, the table stays as it is."""
    made = job(form="history")
    made.send(row(1, es=1000))
    made.run()
    for form, named in (("soft", ', form = "soft"'), ("current", "")):
        made.lake["form"] = form
        made.send(row(made.files + 1, es=2000))
        lake = f"Delta Lake at {made.folder}/lake"
        with pytest.raises(FileError) as refused:
            made.run()
        assert str(refused.value) == (
            f"{made.folder}/state: expected the state of a pipeline into {lake}{named}, got that of one into {lake}, form ="
            ' "history": a form cannot change: leave it, or begin with another state and lake'
        )
        with pytest.raises(FileError, match="a form cannot change"):
            made.check()
    made.lake["form"] = "history"
    made.run()
    assert made.rows("d.t", "id") == [(1,), (2,), (3,)]


@pytest.mark.slow
@pytest.mark.parametrize("lake", [DELTA, ICEBERG])
def test_current_states_that_would_lack_what_was_read_without_them_are_refused(job, lake: str):
    """Rows that came, changed or went meanwhile would be missing, old or still there, and nothing would say so."""
    made = job(lake, is_changelog=True)
    # As long as no table is known, nothing is missing.
    for message, is_current in ((b"no message", False), (row(1, es=1000), True), (row(2, es=1000), False)):
        made.lake["is_current"] = is_current
        made.send(message)
        made.run()
    made.lake["is_current"] = True
    made.send(row(3, es=2000))
    said = (
        "current = false: current states would lack what was read since: leave it, or begin with another state and lake"
    )
    for refused in (made.run, made.check):
        with pytest.raises(FileError) as raised:
            refused()
        assert str(raised.value).endswith(said)
    made.lake["is_current"] = False
    made.run()
    assert made.rows("d.t", "id") == [(1,)]
    assert made.rows("d.t", "id", suffix="changes") == [(1,), (2,), (3,)]


def _keyed(format: str, id: int, names: tuple[str, ...]) -> bytes:
    """Return the insert of a row whose message states a key of columns."""
    row = {"id": id, "n": 1}
    key = {name: row[name] for name in names}
    if format == "canal":
        return canal("INSERT", [{name: str(value) for name, value in row.items()}], id=id, table="t", pkNames=[*names])
    if format == "maxwell":
        key = {"database": "d", "table": "t"} | {f"pk.{name}": value for name, value in key.items()}
        value: dict[str, Any] = {"database": "d", "table": "t", "type": "insert", "ts": 1, "xid": id, "data": row}
    elif format == "debezium":
        source = {"connector": "mysql", "db": "d", "table": "t", "file": "b.1", "pos": id, "row": 0, "ts_ms": 1000}
        value = {"before": None, "after": row, "op": "c", "ts_ms": 1, "source": source}
    else:
        value = row
    return json.dumps({"topic": "s.d.t", "key": key, "value": value}, separators=(",", ":")).encode()


@pytest.mark.slow
@pytest.mark.parametrize("format", ["canal", "maxwell", "debezium", "debezium_flat"])
def test_rows_that_state_another_key_than_their_table_has_are_rejects(tmp_path: Path, format: str):
    """In a later batch and between others, from the engine as well; nothing is merged under the old key."""
    made = local_pipelines.LocalJob(tmp_path, {"delta": str(tmp_path / "lake")}, {"format": format})
    made.more["tables"] = {"zone": "UTC", "table": "@topic.database.table"}
    made.send(*[_keyed(format, i, ("id",)) for i in range(1, 301)])
    strange = [_keyed(format, i, ("id", "n")) for i in range(301, 401)]
    made.send(*strange[:50], *[_keyed(format, i, ("id",)) for i in range(501, 801)], *strange[50:])
    assert [report.counts["rejected"] for report in made.run()] == [0, 100]
    assert [int(id) for (id,) in sorted(made.rows("d.t", "id"), key=lambda row: int(row[0]))] == [
        *range(1, 301),
        *range(501, 801),
    ]
    lines = [one for path in (tmp_path / "state" / "rejects").rglob("*.json*") for one in path.read_text().splitlines()]
    (reason,) = {json.loads(line)["reason"] for line in lines}
    sentence = "expected the key of d.t, 'id': under another one, rows could be confused, got 'id', 'n'"
    assert reason == f"{format}: {'$.pkNames' if format == 'canal' else '$.key'}: {sentence}"


_COPY = {"table": "copy"}
_SWAP = canal("RENAME", [], id=9, isDdl=True, sql="RENAME TABLE `d`.`t` TO `d`.`old`, `d`.`copy` TO `d`.`t`")
_PLACE = "d.copy: this lake table has the rows of what is called 't' now, and keeps its name; d.t has those of a table"


@pytest.mark.slow
def test_it_is_said_where_the_rows_of_a_table_are_that_took_the_name_of_another(job):
    """Nothing says that it is a copy of the other one: a lake table keeps its name. It is said once."""
    made = job()
    made.send(row(1), row(2, **_COPY))
    assert [report.steps for report in made.run(formats=CANAL)] == [[]]
    made.send(_SWAP, row(10))
    (report,) = made.run(formats=CANAL)
    assert [one.startswith(_PLACE) for one in report.steps] == [True]
    made.send(row(11))
    assert [report.steps for report in made.run(formats=CANAL)] == [[]]
    assert made.rows("d.copy", "id") == [(2,), (10,), (11,)]


@pytest.mark.slow
def test_a_dropped_table_is_not_said_to_have_the_rows_of_the_one_that_has_its_name_now(job):
    """It was renamed before, so its lake table has another name, and the new table a lake table of its own."""
    made = job()
    made.send(row(1), canal("RENAME", [], id=2, isDdl=True, sql="RENAME TABLE `d`.`t` TO `d`.`u`"), row(3, table="u"))
    made.run(formats=CANAL)
    made.send(canal("ERASE", [], id=4, table="u", isDdl=True, sql="DROP TABLE `u`"))
    made.run(formats=CANAL)
    made.send(row(5, table="u"))
    assert [report.steps for report in made.run(formats=CANAL)] == [[]]
    assert (made.rows("d.t", "id"), made.rows("d.u", "id")) == ([], [(5,)])


@pytest.mark.parametrize("cut", [1, 2])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_table_that_is_left_out_and_takes_the_place_of_another_leaves_the_rows_of_that(job, cut: int, is_known: bool):
    """In one batch or in two; also where no row of the other one came. It is said once."""
    made, settings = job(), {"formats": CANAL, "chosen": Chosen(exclude=("copy", "old"))}
    first, then, said = [row(1)] * is_known + [row(2, **_COPY)], [_SWAP, row(10)], []
    for messages in (first, then) if cut > 1 else ([*first, *then],):
        made.send(*messages)
        said += [one for report in made.run(**settings) for one in report.steps]
    missing = "d.t: was 'copy', whose rows are not here: what came under that name is missing"
    assert said == ["d.t: 'copy', a copy, was renamed to 't': taken for this table" if is_known else missing]
    made.send(row(11))
    assert [report.steps for report in made.run(**settings)] == [[]]
    assert made.rows("d.t", "id") == [(1,)] * is_known + [(10,), (11,)]


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 2])
def test_a_lake_table_loses_the_rows_of_a_copy_that_a_tool_puts_in_the_place_of_its_table(job, cut: int):
    """They are those of the table, whose lake table goes on; what is not wanted is not asked for that."""
    made = job()
    renamed = "RENAME TABLE `d`.`t` TO `d`.`_t_del`, `d`.`_t_gho` TO `d`.`t`"
    messages = [row(1), row(2, table="_t_gho"), canal("RENAME", [], id=9, isDdl=True, sql=renamed), row(11)]
    for start in range(0, 4, 4 // cut):
        made.send(*messages[start : start + 4 // cut])
        made.run(formats=CANAL)
    assert made.rows("d.t", "id") == [(1,), (11,)]
    assert made.rows("d._t_gho", "id") == []


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_key_that_changed_before_the_first_row_is_that_of_the_table(job, cut: int):
    """As gh-ost widens a key: it creates its copy like the table, alters it, and then fills it."""
    made = job()
    ddl = partial(canal, "ALTER", [], isDdl=True)
    messages = [
        ddl(id=1, sql="CREATE TABLE d.t (id INT PRIMARY KEY, a INT)"),
        ddl(id=2, sql="ALTER TABLE d.t MODIFY id BIGINT UNSIGNED NOT NULL"),
        canal("INSERT", [{"id": str(2**64 - 1), "a": "1"}], id=3, mysqlType={"id": "bigint unsigned", "a": "int"}),
    ]
    for first in range(0, 3, 4 - cut):
        made.send(*messages[first : first + 4 - cut])
        made.run(formats=CANAL)
    assert made.rows("d.t", "id") == [(2**64 - 1,)]
    made.send(
        canal("DELETE", [{"id": str(2**64 - 1), "a": "1"}], id=4, mysqlType={"id": "bigint unsigned", "a": "int"})
    )
    assert [report.waiting for report in made.run(formats=CANAL)] == [{}]
    assert made.rows("d.t", "id") == []
    # A row from before the statement would not be found under its key.
    made.send(row(1, es=1_700_000_001_000))
    assert [list(report.waiting) for report in made.run(formats=CANAL)] == [["d.t"]]
