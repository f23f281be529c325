"""The main job, from files to container files and rejects."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from functools import partial
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

import cdcavro
from cdcavro.errors import FileError
from cdcavro.exact.jsontext import base64_bytes
from cdcavro.spark.job import Report, run
from cdcavro.spark.source.line_frame import read_head, read_line_frame
from cdcavro.sync.local.local_job import run as run_locally
from cdcavro.wire.formats import get_format
from support.messages import SAMPLES, goldens, shop_canal, shop_debezium
from support.roundtrip import error_of, exact

pytestmark = pytest.mark.classic


def read_payloads(folder: Path) -> list[dict]:
    """Read all container files of a folder with fastavro."""
    records = []
    for path in sorted(folder.glob("*.avro")):
        with path.open("rb") as file:
            records += fastavro.reader(file)
    return records


def read_rejects(out: Path) -> list[dict]:
    """Read the rejects of a run, by file and line."""
    found = [json.loads(line) for path in (out / "rejects").glob("*.json") for line in path.read_text().splitlines()]
    return sorted(found, key=lambda reject: (reject["file"], reject["line"]))


@pytest.fixture(scope="module")
def shipped(spark, tmp_path_factory):
    """A run on the messages that ship with the project."""
    out = tmp_path_factory.mktemp("shipped") / "out"
    return out, run(spark, [str(SAMPLES)], str(out))


@pytest.mark.every_spark
def test_every_shipped_message_is_written(shipped):
    """Goldens of all formats, the 188 real messages of Canal and the 229 of Debezium; read = written + rejected."""
    _, report = shipped
    count = {format: len(goldens(format)) for format in cdcavro.FORMATS}
    count["canal"] += 188
    count["debezium"] += 229
    written = Counter[str]()
    for (format, _), number in report.written.items():
        written[format] += number
    assert (report.read, report.rejects, report.is_complete) == (sum(count.values()), {}, True)
    assert written == count
    assert report.written["canal", "UPDATE"] == 70
    assert report.written["datahub_blob", "UPDATE_BEFOR"] == 2
    # 27 of the shop, and the goldens with and without a schema.
    assert report.written["debezium", "TOMBSTONE"] == 29


@pytest.mark.every_spark
@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_container_files_hold_the_wire_schema_and_the_messages(shipped, spark, format):
    """Spark and fastavro read them; the header has the schema with its attributes; every message is in there."""
    folder = shipped[0] / "payloads" / format
    with next(folder.glob("*.avro")).open("rb") as file:
        header = fastavro.reader(file).metadata["avro.schema"]
    assert json.loads(header) == json.loads(cdcavro.load_schema(format).json)
    shop = {"canal": shop_canal, "debezium": shop_debezium}
    texts = goldens(format) + (shop[format]() if format in shop else [])
    records = read_payloads(folder)
    schema = fastavro.parse_schema(json.loads(header))
    assert spark.read.format("avro").load(str(folder)).count() == len(records) == len(texts)
    found = [json.dumps(record["extras"], sort_keys=True) for record in records]
    wanted = [json.dumps(payload_extras(text, format, schema), sort_keys=True) for text in texts]
    assert Counter(found) == Counter(wanted)


def payload_extras(text: bytes, format: str, schema: dict) -> dict[str, str]:
    """Return the extras of a message's payload as fastavro reads them."""
    from io import BytesIO  # noqa: PLC0415

    return fastavro.schemaless_reader(BytesIO(cdcavro.encode(text, format)), schema)["extras"]


def test_the_written_messages_decode_to_the_texts_that_went_in(spark, tmp_path):
    """Payloads taken out of the container file, block by block, are the messages."""
    out = tmp_path / "out"
    run(spark, [str(SAMPLES / "canal" / "shop.jsonl")], str(out))
    canal = get_format("canal")
    found = []
    for path in (out / "payloads" / "canal").glob("*.avro"):
        with path.open("rb") as file:
            for block in fastavro.block_reader(file):
                raw = block.bytes_.read()
                found += canal.read_block(raw, block.num_records, canal.schema)
    from cdcavro.exact.jsontext import render  # noqa: PLC0415

    texts = [exact(render(record)) for record in found]
    assert sorted(map(repr, map(canonical, texts))) == sorted(repr(canonical(exact(text))) for text in shop_canal())


def canonical(value):
    """Order the members of a strict JSON value."""
    if isinstance(value, dict):
        return {name: canonical(value[name]) for name in sorted(value)}
    return [canonical(item) for item in value] if isinstance(value, list) else value


@pytest.fixture
def dirty(tmp_path) -> Path:
    """A folder with a file of many blocks and a gzip file beneath, four lines in them bad."""
    folder = tmp_path / "in [x] {1}"
    (folder / "sub").mkdir(parents=True)
    lines = shop_canal() * 20
    lines[1000], lines[2000], lines[3000] = b"\xff{", b"", b'{"type":"INSERT","data":1}\r'
    (folder / "big.jsonl").write_bytes(b"\n".join(lines))
    with gzip.open(folder / "sub" / "a é%20.jsonl.gz", "wb") as file:
        file.write(b'{"hello":1}\n' + b"\n".join(shop_canal()))
    return folder


@pytest.mark.every_spark
@pytest.mark.parametrize("format", ["auto", "mixed", "canal"])
def test_rejects_keep_raw_bytes_file_and_line_across_blocks(spark, dirty, tmp_path, format):
    """A file is read by several tasks; the lines are still those of the file, and nothing is lost."""
    spark.conf.set("spark.sql.files.maxPartitionBytes", "300k")
    try:
        report = run(spark, [str(dirty)], str(tmp_path / "out"), format=format)
        assert read_line_frame(spark, [str(dirty)]).select("file", "block").distinct().count() > 5
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert (report.read, report.rejected, report.is_complete) == (20 * 188 + 189, 4, True)
    rejects = read_rejects(tmp_path / "out")
    assert [(reject["file"], reject["line"], base64.b64decode(reject["raw"])) for reject in rejects] == [
        (str(dirty / "big.jsonl"), 1001, b"\xff{"),
        (str(dirty / "big.jsonl"), 2001, b""),
        (str(dirty / "big.jsonl"), 3001, b'{"type":"INSERT","data":1}\r'),
        (str(dirty / "sub" / "a é%20.jsonl.gz"), 1, b'{"hello":1}'),
    ]
    unknown = None if format == "mixed" else "canal"
    known = "oms_canal" if format == "mixed" else unknown
    assert [reject["format"] for reject in rejects] == [unknown, unknown, known, unknown]
    assert (rejects[2]["path"], rejects[2]["reason"]) == ("$.data", "expected array, got number")


def test_auto_follows_the_file_where_a_message_fits_two_formats(spark, tmp_path):
    """Heartbeats at the head of a file of typed messages are messages of that file's format."""
    heartbeat = b'{"recordType":"HEARTBEAT","allMetaData":{"timestamp":"1609344671"}}'
    typed = goldens("oms_default_extend_column_type")[1]
    (tmp_path / "typed.jsonl").write_bytes(b"\n".join([heartbeat] * 60 + [typed]))
    (tmp_path / "plain.jsonl").write_bytes(heartbeat)
    report = run(spark, [str(tmp_path)], str(tmp_path / "auto"))
    assert {format for format, _ in report.written} == {"oms_default_extend_column_type", "oms_default"}
    assert report.written["oms_default_extend_column_type", "HEARTBEAT"] == 60
    report = run(spark, [str(tmp_path / "typed.jsonl")], str(tmp_path / "mixed"), format="mixed")
    assert report.written["oms_default", "HEARTBEAT"] == 60


def test_a_file_without_a_known_message_is_all_rejects(spark, tmp_path):
    """Nothing is written, and no folder for it made."""
    (tmp_path / "in.jsonl").write_bytes(b"hello\n[]\n")
    report = run(spark, [str(tmp_path / "in.jsonl")], str(tmp_path / "out"))
    assert report == Report(2, {}, {"": 2})
    assert not (tmp_path / "out" / "payloads").exists()


@pytest.mark.parametrize(("format", "other"), [("debezium", "canal"), ("canal", None), ("mixed", None)])
def test_messages_that_look_like_another_format_are_told(spark, tmp_path, format, other):
    """Whether they can be read as what somebody calls them or not."""
    path = tmp_path / "in.jsonl"
    path.write_bytes((SAMPLES / "canal" / "shop.jsonl").read_bytes())
    said: list[str] = []
    run(spark, [str(path)], str(tmp_path / "out"), format=format, say=said.append)
    told = [one for one in said if "look like" in one]
    assert told == ([] if other is None else [f"{path}: messages that look like {other} are read as {format}"])


def test_an_empty_file_is_done(spark, tmp_path):
    """No lines, no messages, no rejects."""
    (tmp_path / "in.jsonl").write_bytes(b"")
    assert run(spark, [str(tmp_path / "in.jsonl")], str(tmp_path / "out")) == Report(0, {}, {})


def test_a_rejects_format_is_null_where_it_is_not_known(spark, tmp_path):
    """All six members are always there."""
    (tmp_path / "in.jsonl").write_bytes(b"hello")
    run(spark, [str(tmp_path / "in.jsonl")], str(tmp_path / "out"))
    (reject,) = read_rejects(tmp_path / "out")
    assert list(reject) == ["raw", "file", "line", "format", "path", "reason"]
    assert reject["format"] is None


def test_a_rejects_bytes_are_one_line_of_base64(spark, tmp_path):
    """As everywhere in the project: strict readers take no line breaks."""
    line = b"\xff" + b"x" * 500
    (tmp_path / "in.jsonl").write_bytes(line)
    run(spark, [str(tmp_path / "in.jsonl")], str(tmp_path / "out"))
    (reject,) = read_rejects(tmp_path / "out")
    assert base64_bytes(reject["raw"]) == line


def test_a_line_longer_than_a_message_may_be_is_a_reject(spark, tmp_path, monkeypatch):
    """Its beginning is kept, its length told; the lines beside it are converted."""
    good = b'{"recordType":"DDL"}'
    (tmp_path / "in.jsonl").write_bytes(good + b"\n" + b"x" * (65 << 20) + b"\n" + good)
    report = run(spark, [str(tmp_path / "in.jsonl")], str(tmp_path / "out"), format="oms_default")
    assert (report.read, report.rejected) == (3, 1)
    (reject,) = read_rejects(tmp_path / "out")
    assert (reject["line"], len(base64.b64decode(reject["raw"]))) == (2, 64 << 10)
    assert reject["reason"] == f"expected at most {64 << 20} bytes, got {65 << 20}"


def test_a_file_whose_name_spark_passes_over_is_refused_and_told_in_folders(spark, tmp_path):
    """Nothing named is left out without a word."""
    for name in ("_a.jsonl", ".b.jsonl", "c.jsonl"):
        (tmp_path / name).write_bytes(b'{"recordType":"DDL"}')
    with pytest.raises(FileError) as caught:
        run(spark, [str(tmp_path / "c.jsonl"), str(tmp_path / "_a.jsonl")], str(tmp_path / "out"))
    assert (
        str(caught.value) == f"{tmp_path}/_a.jsonl: expected a name that Spark reads, got one that starts with _ or ."
    )
    said: list[str] = []
    assert run(spark, [str(tmp_path)], str(tmp_path / "out"), say=said.append).read == 1
    assert said[0] == f"passing over 2 files whose names start with _ or ., such as {tmp_path}/.b.jsonl"


@pytest.mark.every_spark
@pytest.mark.parametrize("format", ["auto", "mixed"])
def test_packed_files_are_told_by_their_endings_and_their_first_bytes(spark, tmp_path, format):
    """Each is read as a whole, beside plain ones that are cut; rejects have the lines of the text."""
    lines = shop_canal()
    text = b"\n".join([b"{", *lines])
    zstd, folder = pa.Codec("zstd").compress(text, asbytes=True), tmp_path / "in [x] {1}"
    folder.mkdir()
    packed = {
        "a.zst": zstd,
        "b é%20.ZSTD": zstd,
        "c.jsonl": zstd,
        "d": gzip.compress(text),
        "e.gz": gzip.compress(text),
    }
    for name, content in {**packed, "f.jsonl": text}.items():
        (folder / name).write_bytes(content)
    spark.conf.set("spark.sql.files.maxPartitionBytes", "10k")
    try:
        report = run(spark, [str(folder)], str(tmp_path / "out"), format=format)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert (report.read, report.rejected, report.is_complete) == (6 * 189, 6, True)
    rejects = [
        (reject["file"], reject["line"], base64.b64decode(reject["raw"])) for reject in read_rejects(tmp_path / "out")
    ]
    assert rejects == [(str(folder / name), 1, b"{") for name in [*packed, "f.jsonl"]]


@pytest.mark.parametrize("is_late", [False, True])
def test_a_damaged_packed_file_is_an_error(spark, tmp_path, is_late):
    """Whether its beginning shows it or not."""
    text = b"\n".join(shop_canal() * (400 if is_late else 1))
    (tmp_path / "a.zst").write_bytes(pa.Codec("zstd").compress(text, asbytes=True)[:-10])
    expected = f"{tmp_path}/a.zst: expected a whole Zstandard file, got one that ends too early"
    assert error_of(lambda: run(spark, [str(tmp_path)], str(tmp_path / "out"))).endswith(expected)


def test_an_output_may_have_any_name_and_be_replaced(spark, tmp_path):
    """Characters of patterns are characters; `force` replaces both folders."""
    out = tmp_path / "out[1]*"
    (tmp_path / "out11").mkdir()
    first = run(spark, [str(SAMPLES / "oms_default")], str(out))
    (out / "rejects").mkdir()
    assert run(spark, [str(SAMPLES / "oms_default")], str(out), force=True) == first
    assert not (out / "rejects").exists()


def test_what_spark_cannot_do_is_one_sentence(spark, tmp_path):
    """A file in place of the output folder, and a scheme that nobody knows."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(cdcavro.JobError) as caught:
        run(spark, [str(SAMPLES / "oms_default")], str(tmp_path / "file"))
    java = "org.apache.hadoop.fs.ParentNotDirectoryException"
    assert str(caught.value) == f"the Spark job failed: {java}: Parent path is not a directory: file:{tmp_path}/file"
    with pytest.raises(cdcavro.JobError, match='No FileSystem for scheme "foo"') as caught:
        run(spark, ["foo://user:secret@host/x"], str(tmp_path / "out"))
    assert "secret" not in str(caught.value)


@pytest.mark.every_spark
def test_an_input_that_is_not_there_and_an_output_that_is(spark, tmp_path):
    """Both are told before anything is done."""
    with pytest.raises(FileError) as caught:
        run(spark, [str(SAMPLES), str(tmp_path / "none")], str(tmp_path / "out"))
    assert str(caught.value) == f"{tmp_path}/none: expected a file or folder, got none"
    (tmp_path / "out" / "rejects").mkdir(parents=True)
    with pytest.raises(FileError) as caught:
        run(spark, [str(SAMPLES)], str(tmp_path / "out"))
    assert (
        str(caught.value)
        == f"{tmp_path}/out/rejects: expected a new folder (--force replaces one), got one that exists"
    )


def test_the_head_of_a_file_ends_with_a_complete_line(spark, tmp_path):
    """A line cut by the bound is not looked at; the last line needs no end."""
    (tmp_path / "a").write_bytes(b"one\ntwo\nthree")
    uri = (tmp_path / "a").as_uri()
    assert [tuple(line) for line in read_head(spark, uri).lines] == [(1, b"one", 3), (2, b"two", 3), (3, b"three", 5)]
    assert [line.raw for line in read_head(spark, uri, 6).lines] == [b"one"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.gz", "a.zst"])
def test_a_byte_order_mark_at_the_start_is_passed_over_and_said(spark, tmp_path, name):
    """One before a later line makes that a reject, which keeps it."""
    mark, (first, second) = b"\xef\xbb\xbf", shop_canal()[10:12]
    text = mark + first + b"\n" + mark + second
    pack = {"a.gz": gzip.compress, "a.zst": lambda raw: pa.Codec("zstd").compress(raw, asbytes=True)}.get(name, bytes)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(pack(text))
    said: list[str] = []
    report = run(spark, [str(tmp_path / "in")], str(tmp_path / "out"), say=said.append)
    assert (report.read, report.rejects, {format for format, _ in report.written}) == (2, {"canal": 1}, {"canal"})
    assert f"{tmp_path}/in/{name}: a byte order mark at the start is skipped" in said
    (reject,) = read_rejects(tmp_path / "out")
    assert (reject["line"], base64.b64decode(reject["raw"])) == (2, mark + second)
    assert reject["reason"] == "expected JSON, got a byte order mark before it"


def canonical_records(out: Path) -> dict[str, list[str]]:
    """Return the records of a run by format, in an order that does not depend on tasks."""
    folders = (out / "payloads").iterdir()
    return {
        folder.name: sorted(json.dumps(one, sort_keys=True, default=repr) for one in read_payloads(folder))
        for folder in folders
    }


@pytest.mark.parametrize("format", ["auto", "mixed", "canal"])
def test_the_job_without_spark_writes_the_same(spark, dirty, tmp_path, format):
    """The same account, the same records of each format under the same schema, and the same rejects."""
    (dirty / "empty.jsonl").touch()
    (dirty / "b.zst").write_bytes(pa.compress(b"{}\n" + goldens("debezium")[0], "zstd", asbytes=True))
    (dirty / "kafka.jsonl").write_bytes(
        b'{"key":null,"value":' + shop_canal()[10] + b'}\n{"type":5,"data":[],"table":"t"}'
    )
    inputs, ours, theirs = [str(SAMPLES), str(dirty)], tmp_path / "local", tmp_path / "spark"
    reports = run_locally(inputs, str(ours), format=format), run(spark, inputs, str(theirs), format=format)
    assert reports[0] == reports[1]
    assert reports[0].rejected >= 4
    assert canonical_records(ours) == canonical_records(theirs)
    assert read_rejects(ours) == read_rejects(theirs)
    headers = [set(map(header_of, out.glob("payloads/*/*.avro"))) for out in (ours, theirs)]
    assert headers[0] == headers[1]


def test_a_job_on_spark_and_one_without_it_take_turns_in_one_folder(spark, tmp_path):
    """Each refuses the folder of the other, and replaces what is in it if it is told to."""
    ours, theirs = tmp_path / "local", tmp_path / "spark"
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b"{\n")
    files = [*(str(SAMPLES / name) for name in ("canal", "debezium")), str(bad)]
    runs = {ours: run_locally, theirs: partial(run, spark)}
    for (out, made), other in zip(runs.items(), reversed(runs.values()), strict=True):
        made(files[:1], str(out))
        with pytest.raises(FileError) as refused:
            other(files, str(out))
        with pytest.raises(FileError) as by_itself:
            made(files, str(out))
        assert str(refused.value) == str(by_itself.value)
        assert set(canonical_records(out)) == {"canal"}
    run(spark, files, str(ours), force=True)
    run_locally(files, str(theirs), force=True)
    assert canonical_records(ours) == canonical_records(theirs)
    assert {"canal", "debezium"} <= canonical_records(ours).keys()
    assert read_rejects(ours) == read_rejects(theirs)
    assert len(read_rejects(ours)) == 1


def header_of(path: Path) -> str:
    """Return the schema and the codec of a container file."""
    with path.open("rb") as file:
        metadata = fastavro.reader(file).metadata
    return json.dumps([json.loads(metadata["avro.schema"]), metadata["avro.codec"]], sort_keys=True)
