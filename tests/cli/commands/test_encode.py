"""`--jobs`: real files, real threads; nothing that is written or said depends on how many there are."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from base64 import b64decode
from functools import partial
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from cdcavro.avro.container import ContainerReader
from cdcavro.cli import main
from cdcavro.cli.commands import encode
from cdcavro.exact import jsontext
from cdcavro.files import lines
from cdcavro.files.lines import read_chunks
from cdcavro.wire.formats import FORMATS
from support.messages import SAMPLES, goldens, shop_canal
from support.mutations import mutated
from support.processes import end, running
from support.roundtrip import exact

COMMAND = Path(sys.executable).with_name("cdcavro")
SHOP = (SAMPLES / "canal" / "shop.jsonl").read_bytes()
FIRST = shop_canal()[10]
CHUNK = 5000


@pytest.fixture
def soon(monkeypatch):
    """Cut small."""
    monkeypatch.setattr(lines, "read_chunks", partial(read_chunks, size=CHUNK))


def encoded(folder, given, jobs, *options, input=None):
    """Encode a file, or standard input; give all that came of it."""
    out, rejects = folder / f"{jobs}.avro", folder / f"{jobs}.rejects"
    arguments = ["encode", str(given), "--out", str(out), "--rejects", str(rejects), "--jobs", str(jobs), "--force"]
    result = CliRunner().invoke(main, [*arguments, *options], input=input, catch_exceptions=False)
    files = [path.read_bytes() if path.exists() else None for path in (out, rejects)]
    return result.exit_code, result.stderr, *files


def decoded(path, jobs, input=None):
    """Decode a file to standard output; give all that came of it."""
    result = CliRunner().invoke(main, ["decode", str(path), "--jobs", str(jobs)], input=input, catch_exceptions=False)
    return result.exit_code, result.stderr, result.stdout_bytes


def decoded_to_file(path, jobs):
    """Decode a file to a file, give what `decoded` gives."""
    out = path.with_suffix(".lines")
    arguments = ["decode", str(path), "--jobs", str(jobs), "--out", str(out), "--force"]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.stdout_bytes == b""
    return result.exit_code, result.stderr, out.read_bytes()


def at_borders():
    """Make a file with a fault, an empty line or a line break of another kind wherever a chunk ends."""
    wrong = [b"", b"{", b"\xff", b"[1]", FIRST + b"\r", b"x" * CHUNK * 3, b"\r"]
    raw = b""
    for number in range(40):
        line = wrong[number % len(wrong)]
        border = (len(raw) // CHUNK + 1) * CHUNK + number % 5 - 2
        # The line break, or the first or last byte of the line, falls on the border.
        filler = b'{"type":"INSERT","database":"%s"}' % (b"a" * max(0, border - len(raw) - 34))
        raw += filler + b"\n" + line + b"\n"
    return raw


CONTENTS = {
    "faults at borders": at_borders(),
    "messages": SHOP,
    "no newline at the end": SHOP + FIRST,
    "CRLF": SHOP.replace(b"\n", b"\r\n"),
    "empty lines": b"\n" * 3 * CHUNK + FIRST,
    "a long line": SHOP[: CHUNK // 2] + b'{"type":"INSERT","database":"%s"}\n' % (b"x" * 4 * CHUNK) + SHOP,
}


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("content", "jobs"),
    [
        pytest.param(CONTENTS[name], jobs, id=f"{name}-{jobs}", marks=() if i == 0 else pytest.mark.slow)
        for i, name in enumerate(CONTENTS)
        for jobs in (2, 5)
    ],
)
def test_files_and_sentences_do_not_depend_on_the_number_of_threads(tmp_path, content, jobs):
    """Container file, rejects, standard error and exit code, to the byte; and back."""
    path = tmp_path / "in.jsonl"
    path.write_bytes(content)
    alone = encoded(tmp_path, path, 1, "--format", "canal")
    assert alone[2]
    assert encoded(tmp_path, path, jobs, "--format", "canal") == alone
    back = decoded(tmp_path / "1.avro", 1)
    assert decoded(tmp_path / "1.avro", jobs) == back
    assert decoded_to_file(tmp_path / "1.avro", jobs) == back


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("jobs", [1, 2])
def test_it_does_not_matter_where_the_bytes_come_from(tmp_path, jobs):
    """A file, gzip, standard input and gzip there give the same container file."""
    content = at_borders()
    plain, packed = tmp_path / "in.jsonl", tmp_path / "in.jsonl.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    expected = encoded(tmp_path, plain, 1)[2]
    assert encoded(tmp_path, packed, jobs)[2] == expected
    assert encoded(tmp_path, "-", jobs, input=content)[2] == expected
    assert encoded(tmp_path, "-", jobs, input=gzip.compress(content))[2] == expected


@pytest.mark.usefixtures("soon")
@pytest.mark.slow
@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_blocks_on_standard_input_are_shared_too(tmp_path, codec):
    """Payloads go to the threads then, not places in a file."""
    path = tmp_path / "in.jsonl"
    path.write_bytes(SHOP * 30)
    assert encoded(tmp_path, path, 1, "--codec", codec)[0] == 0
    alone = decoded(tmp_path / "1.avro", 1)
    assert decoded("-", 2, input=(tmp_path / "1.avro").read_bytes()) == alone
    assert alone[2].count(b"\n") == 188 * 30


@pytest.mark.slow
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("name", ["plain", "-"])
def test_a_broken_payload_is_told_by_its_number_and_what_is_before_it_is_written(tmp_path, name):
    """As by one thread; what others made of blocks behind it is dropped."""
    path, out = tmp_path / "in.jsonl", tmp_path / "1.avro"
    path.write_bytes(SHOP * 30)
    encoded(tmp_path, path, 1, "--codec", "null")
    raw = bytearray(out.read_bytes())
    with out.open("rb") as stream:
        frames = list(ContainerReader(stream, "x").frames())
    raw[frames[-2].start + frames[-2].size - 1] = 0xFF
    out.write_bytes(raw)
    before = sum(frame.count for frame in frames[:-1]) - 1
    given = (out, None) if name == "plain" else ("-", bytes(raw))
    code, stderr, lines = decoded(given[0], 2, input=given[1])
    assert code == 2
    assert stderr.startswith(f"Error: {given[0]}: message {before + 1}: canal: $")
    assert lines.count(b"\n") == before
    assert (code, stderr, lines) == decoded(given[0], 1, input=given[1])


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_that_ends_too_early_is_decoded_up_to_there(tmp_path, jobs):
    """Then it is an error."""
    path, out = tmp_path / "in.jsonl", tmp_path / "1.avro"
    path.write_bytes(SHOP * (30 if jobs > 1 else 3))
    whole = encoded(tmp_path, path, 1)[2]
    out.write_bytes(whole[:-20])
    code, stderr, lines = decoded(out, jobs)
    assert (code, stderr) == (2, f"Error: {out}: expected a whole Avro container file, got one that ends too early\n")
    with out.open("wb") as stream:
        stream.write(whole)
    everything = decoded(out, 1)[2]
    assert everything.startswith(lines)
    assert len(lines) > len(everything) - 2 * CHUNK


@pytest.mark.usefixtures("soon")
def test_a_line_that_is_too_long_is_one_reject(tmp_path, monkeypatch):
    """Whoever reads the chunk keeps the beginning only."""
    monkeypatch.setattr(jsontext, "MAX_LENGTH", 100_000)
    path = tmp_path / "in.jsonl"
    path.write_bytes(SHOP + b"[" * 300_000 + b"\n" + SHOP)
    code, stderr, _, rejects = encoded(tmp_path, path, 1)
    line = "expected at most 100000 bytes, got 300000"
    assert (code, stderr) == (1, f"{path}:189: canal: $: {line}\nread 377 = written 376 + rejected 1\n")
    assert json.loads(rejects)["reason"] == line


@pytest.mark.parametrize("jobs", [1, 4])
def test_an_empty_file_becomes_one_without_messages(tmp_path, jobs):
    """And back."""
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"")
    code, stderr, out, _ = encoded(tmp_path, path, jobs, "--format", "canal")
    assert (code, stderr) == (0, "read 0 = written 0 + rejected 0\n")
    assert decoded(tmp_path / f"{jobs}.avro", jobs) == (0, "", b"")
    assert out


def test_the_file_does_not_depend_on_the_time(tmp_path):
    """The sync marker is made of what is in the file, so that the same input gives the same file."""
    path = tmp_path / "in.jsonl"
    path.write_bytes(SHOP)
    assert encoded(tmp_path, path, 1)[2] == encoded(tmp_path, path, 1)[2]


@pytest.mark.parametrize(("format", "value"), [("canal", "-1"), ("canal", "257"), ("canal", "two")])
def test_a_number_of_threads_that_is_none_is_wrong_usage(format, value):
    """Before anything is read."""
    result = CliRunner().invoke(main, ["encode", "--format", format, "--jobs", value], input=b"")
    assert result.exit_code == 2
    assert "Invalid value for '--jobs'" in result.stderr


def test_none_is_as_many_as_there_are_cores(monkeypatch):
    """Those that this process may use."""
    given = []

    def noted(_work, _tasks, jobs, _out):
        given.append(jobs)
        yield from ()

    monkeypatch.setattr(encode, "write_in_order", noted)
    assert CliRunner().invoke(main, ["encode", "--format", "canal", "--jobs", "0"], input=b"").exit_code == 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert given == [cores]


# the command as it is used


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A file that is worth several threads, with a fault here and there."""
    path = tmp_path_factory.mktemp("large") / "large.jsonl"
    with path.open("wb") as stream:
        for number in range(100):
            stream.write(SHOP if number % 9 else SHOP + b"\n{\n")
    return path


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not list threads")


def waited(process, count):
    """Wait until a command has so many threads beside its own at work."""
    while len(list(Path(f"/proc/{process.pid}/task").iterdir())) <= count:
        assert process.poll() is None
        time.sleep(0.005)


@pytest.fixture
def started(tmp_path, large):
    """A command at work with two threads, which waits for more of its standard input."""
    arguments = [COMMAND, "encode", "--format", "canal", "--jobs", "2", "--out", tmp_path / "x.avro"]
    with running(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(large.read_bytes())
        process.stdin.flush()
        yield process
        process.kill()


@pytest.mark.slow
def test_the_command_gives_the_same_whatever_its_jobs(tmp_path, large):
    """As it is used: with its own chunks."""

    def run(*arguments):
        done = subprocess.run([COMMAND, *arguments], capture_output=True, check=False)
        return done.returncode, done.stderr, done.stdout

    alone, shared = tmp_path / "1.avro", tmp_path / "n.avro"
    expected = run("encode", large, "--out", alone)
    assert expected[0] == 1
    assert b"read 18,824 = written 18,800 + rejected 24\n" in expected[1]
    decoded = run("decode", alone)
    for jobs in ("2", "3", "0"):
        assert run("encode", large, "--out", shared, "--jobs", jobs, "--force") == expected
        assert shared.read_bytes() == alone.read_bytes()
        assert run("decode", shared, "--jobs", jobs) == decoded


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_the_command_and_leaves_no_file(tmp_path, started, number, code):
    """Whatever the threads are doing; none complains, and the exit code is that of the signal."""
    waited(started, 2)
    end(started, number)
    assert started.returncode == code
    assert b"Traceback" not in started.stderr.read()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@needs_proc
def test_an_interrupt_does_not_wait_for_a_large_message(tmp_path):
    """Threads that are at work on some that go the exact way, each for ten seconds and more, are left behind."""
    large = b'{"type":"INSERT","data":[' + b'{"a":"1","a":2},' * 2_500_000
    arguments = [COMMAND, "encode", "--format", "canal", "--jobs", "2", "--out", tmp_path / "x.avro"]
    before = os.times()
    with running(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write((large + b"\n") * 2)
        process.stdin.flush()
        waited(process, 2)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert b"Traceback" not in process.stderr.read()
    assert os.times().children_user - before.children_user < 10
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is full")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_full_disk_is_one_sentence(large, jobs):
    """Whoever converts, one thread writes."""
    done = subprocess.run(
        [COMMAND, "encode", large, "--out", "/dev/full", "--jobs", jobs], capture_output=True, check=False
    )
    assert done.returncode == 2
    assert (
        done.stderr.splitlines()[-1]
        == b"Error: /dev/full: expected a file that can be written, got 'No space left on device'"
    )


@pytest.mark.slow
@needs_proc
def test_a_closed_pipe_ends_the_command_quietly(tmp_path, large):
    """`cdcavro decode --jobs 2 | head -1` has no complaint."""
    out = tmp_path / "x.avro"
    subprocess.run([COMMAND, "encode", large, "--out", out, "--codec", "null"], stderr=subprocess.PIPE, check=False)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    arguments = [COMMAND, "decode", out, "--jobs", "2"]
    with running(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout.read(1) == b"{"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


# Starts a command as a small program: memory that was taken before a program is loaded counts as its own.
_MEASURED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def most_memory(*arguments):
    """Run a command, and return the most memory that it took at any moment, in KiB."""
    command = [sys.executable, "-c", _MEASURED, COMMAND, *arguments]
    code, taken = subprocess.run(command, capture_output=True, check=True).stdout.split()
    assert code == b"0"
    return int(taken)


@pytest.mark.slow
@needs_proc
def test_memory_does_not_grow_with_the_file(tmp_path):
    """Of a file of 36 MB a command takes what it takes of one of 12."""
    path, out, again = tmp_path / "in.jsonl", tmp_path / "x.avro", tmp_path / "again.jsonl"
    taken = []
    for times in (115, 345):
        path.write_bytes(SHOP * times)
        taken.append(most_memory("encode", path, "--out", out, "--jobs", "2", "--force"))
        taken.append(most_memory("decode", out, "--out", again, "--jobs", "2", "--force"))
    assert max(taken) < 70 << 10
    assert max(taken[2:]) < max(taken[:2]) + (10 << 10)


@pytest.mark.parametrize(
    "arguments",
    [
        ("encode", "--out", "out", "--format", "oms_dataworks", "--jobs", "2"),
        ("validate", "--format", "mixed"),
        ("transcode", "--to", "oms_canal", "--out", "out"),
        ("tables", "--out", "out", "--table", "t"),
    ],
)
def test_a_version_that_no_document_describes_is_told_once(tmp_path, monkeypatch, arguments):
    """In a run, and not for each message."""
    monkeypatch.chdir(tmp_path)
    message = b'{"version":"1.0","schema":{"source":{"table":"t"},"pk":["id"]},"payload":{"op":"INSERT","after":{"data":{"id":1}}}}'
    (tmp_path / "in.jsonl").write_bytes(message.replace(b"1.0", b"2.0") + b"\n" + 3 * (message + b"\n"))
    done = CliRunner().invoke(main, [arguments[0], "in.jsonl", *arguments[1:]], catch_exceptions=False)
    sentence = "oms_dataworks: version '1.0' is read as 2.0, which is the one that is documented"
    assert (done.exit_code, done.stderr.splitlines().count(sentence)) == (0, 1)
    (tmp_path / "in.jsonl").write_bytes(message.replace(b"1.0", b"2.0") + b"\n")
    done = CliRunner().invoke(
        main, [arguments[0], "in.jsonl", *arguments[1:], *["--force"][: arguments[0] != "validate"]]
    )
    assert (done.exit_code, sentence in done.stderr) == (0, False)


@pytest.mark.parametrize("format", FORMATS)
def test_what_was_read_is_written_or_rejected_with_its_bytes(tmp_path, format):
    """Of mutated messages, whatever they became: each line is one of the two, and every value is the one that was sent."""
    random, own = Random(format), goldens(format)
    mutants = [mutated(random, random.choice(own)) for _ in range(400)]
    lines = [line for line in mutants if b"\n" not in line and not line.endswith(b"\r")]
    (given := tmp_path / "in.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    _, said, payloads, rejects = encoded(tmp_path, given, 2, "--format", format, "--max-rejects", "100%")
    rejected = {one["line"]: b64decode(one["raw"]) for one in map(json.loads, rejects.splitlines())}
    (written := tmp_path / "made.avro").write_bytes(payloads)
    texts = decoded(written, 2)[2].splitlines()
    counts = f"read {len(lines)} = written {len(texts)} + rejected {len(rejected)}"
    assert said.splitlines()[-1] == counts
    assert len(texts) > 20 < len(rejected)
    assert rejected == {number: line for number, line in enumerate(lines, 1) if number in rejected}
    kept = [line for number, line in enumerate(lines, 1) if number not in rejected]
    assert [exact(text) for text in texts] == [exact(line) for line in kept]
