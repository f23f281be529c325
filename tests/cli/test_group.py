"""The command line: what each command prints and writes, and the exit code of every kind of end."""

from __future__ import annotations

import base64
import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import re
import resource
import shlex
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections import Counter
from functools import partial
from importlib.metadata import version
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

import cdcavro
from cdcavro import FORMATS
from cdcavro.avro.container import ContainerWriter
from cdcavro.cli import console, main
from cdcavro.cli.console import MAX_ROWS, Counts
from cdcavro.cli.group import Terminated, second_signal_ends, signals_wait
from cdcavro.cli.options import parse_max_rejects
from cdcavro.cli.spark_session import one_compiler
from cdcavro.engine.machine import COMPILED
from cdcavro.errors import shown
from cdcavro.exact import jsontext
from cdcavro.exact.jsontext import same
from cdcavro.files.lines import SPLIT
from cdcavro.wire.format import Format
from cdcavro.wire.formats import get_format
from cdcavro.wire.marked_members import operation_of
from support import stream_trial
from support.messages import SAMPLES, goldens, shop_canal
from support.places import ROOT
from support.processes import end, running

SHOP = str(SAMPLES / "canal" / "shop.jsonl")
INSERT = shop_canal()[10]
EMPTY_LINE = "canal: $: expected JSON, got an empty line"
COMMAND = Path(sys.executable).with_name("cdcavro")
LOCKS = Path("/proc/locks")


def run(*arguments, input=None):
    """Run a command inside this process."""
    return CliRunner().invoke(main, [str(one) for one in arguments], input=input, catch_exceptions=False)


def values(raw):
    """Parse JSON lines exactly."""
    return [jsontext.parse(line) for line in raw.rstrip(b"\n").split(b"\n")]


def lines_file(folder, *lines):
    """Write lines into a file and give its path."""
    path = folder / "in.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return str(path)


def assert_ends(result, code, stderr):
    """Check exit code and the whole of standard error."""
    assert (result.exit_code, result.stderr) == (code, stderr)


def usage(command, sentence):
    """Return what a command says about wrong usage."""
    arguments = {"schema": "NAME", "decode": "[INPUT]"}.get(command, "[INPUT]...")
    return f"Usage: main {command} [OPTIONS] {arguments}\nTry 'main {command} --help' for help.\n\nError: {sentence}\n"


# formats, schema, version, help


def test_formats_lists_every_format_with_its_record_and_fingerprint():
    """One row each, in the order in which formats are preferred."""
    heading, *rows = run("formats").stdout.splitlines()
    assert heading.split() == ["format", "record", "fingerprint", "what", "it", "is"]
    assert [row.split()[0] for row in rows] == list(FORMATS)
    for row in rows:
        own = get_format(row.split()[0])
        assert row.split()[1:3] == [own.envelope.name, own.schema.fingerprint]
        assert row.endswith(own.envelope.doc.partition(" Source: ")[0])


@pytest.mark.parametrize("format", FORMATS)
def test_schema_prints_text_canonical_form_and_fingerprint(format):
    """They are those of `load_schema`."""
    schema = cdcavro.load_schema(format)
    assert json.loads(run("schema", format).stdout) == json.loads(schema.json)
    assert run("schema", format, "--canonical").stdout == schema.canonical + "\n"
    assert run("schema", format, "--fingerprint").stdout == schema.fingerprint + "\n"


def test_schema_prints_one_thing_only():
    """Two wishes are wrong usage."""
    result = run("schema", "oms_canal", "--canonical", "--fingerprint")
    assert_ends(result, 2, usage("schema", "--canonical and --fingerprint exclude each other"))


def test_an_unknown_format_is_wrong_usage_with_the_nearest_name():
    """Did you mean."""
    sentence = "Invalid value for 'NAME': unknown format 'oms_cnal': did you mean oms_canal?"
    assert_ends(run("schema", "oms_cnal"), 2, usage("schema", sentence))
    sentence = "Invalid value for '--format': unknown format 'mixd': did you mean mixed?"
    assert_ends(run("validate", SHOP, "--format", "mixd"), 2, usage("validate", sentence))


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("sync", "statsu"), ": did you mean status?"),
        (("sync", "pipeline.toml"), ": did you mean --config pipeline.toml?"),
        (("sync", "what"), "'accept-loss'."),
        (("sync", SHOP), f": did you mean --files {SHOP}?"),
        (("tables", SHOP, "--out", "o", "--on-misfit", "regect"), ": did you mean reject?"),
        (("publish", "x.avsc", "--registry", "file:r", "--compatibility", "bakward"), ": did you mean BACKWARD?"),
    ],
)
def test_a_word_that_is_none_of_some_is_wrong_usage_with_the_nearest_one(arguments, hint):
    """A file in place of what is to be done is told with the option that takes it."""
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.endswith(f"{hint}\n")


def test_the_version_is_told():
    """Under the command's name."""
    result = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True)
    build = "compiled" if COMPILED else "pure Python: not compiled when it was installed"
    assert result.stdout == f"cdcavro {version('cdcavro')} ({build})\n"


@pytest.mark.slow
def test_the_module_runs_as_the_script_does():
    """`python -m cdcavro`, also for what is wrong; of the package that is installed, not of a checkout."""
    module = [sys.executable, "-P", "-m", "cdcavro"]
    for arguments in (["--version"], ["--help"], ["sniff", SHOP], ["sniff", "none.jsonl"], ["snif"]):
        ours, script = (
            subprocess.run([*one, *arguments], capture_output=True, check=False) for one in (module, [COMMAND])
        )
        assert (ours.returncode, ours.stdout, ours.stderr) == (script.returncode, script.stdout, script.stderr)


def test_what_the_system_refuses_names_its_file(monkeypatch):
    """An error of the system without a file is of the output; one with a file says which."""
    for arguments, said in (
        ((13, "Permission denied"), "the output failed"),
        ((13, "Permission denied", "/a/b"), "/a/b"),
    ):

        def refuse(*_, arguments=arguments, **__):
            raise OSError(*arguments)

        monkeypatch.setattr("cdcavro.cli.commands.formats.table", refuse)
        assert_ends(run("formats"), 2, f"Error: {said}: Permission denied\n")


@pytest.mark.parametrize("command", [[], *[[name] for name in main.commands]])
def test_every_command_has_help_with_an_example(command):
    """The example stands on a line of its own."""
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert f"  Example:\n    cdcavro {' '.join(command)}" in result.stdout


# sniff


@pytest.mark.parametrize("format", FORMATS)
def test_sniff_tells_the_format_of_every_golden_message(format):
    """From standard input, one line each."""
    messages = b"\n".join(message for message in goldens(format) if cdcavro.sniff(message) == format)
    result = run("sniff", input=messages)
    assert result.stdout == f"{format}\n" * len(messages.split(b"\n"))
    assert result.exit_code == 0


def test_sniff_of_several_files_says_where_each_message_stands(tmp_path):
    """Braces in a name are nothing special."""
    path = tmp_path / "{a}.jsonl"
    path.write_bytes(INSERT + b"\n" + goldens("oms_shareplex")[1])
    result = run("sniff", path, path)
    assert result.stdout == f"{path}:1: canal\n{path}:2: oms_shareplex\n" * 2


def test_sniff_tells_what_it_does_not_know_and_ends_with_1():
    """The messages behind it go on."""
    result = run("sniff", input=b"{\n\n" + INSERT + b"\n")
    assert result.stdout == "canal\n"
    stderr = (
        "-:1: message: $: expected JSON, got text that ends too early, at character 1\n"
        "-:2: message: $: expected JSON, got an empty line\n"
        f"-: {SPLIT}\n"
    )
    assert_ends(result, 1, stderr)


def test_a_mixed_file_says_which_line_looks_like_which_format(tmp_path):
    """`sniff` names the first line of each format, a fault what its message looks like, and a stated format the first other."""
    other = goldens("oms_default")[0]
    path = lines_file(tmp_path, INSERT, INSERT, other, INSERT)
    result = run("sniff", path)
    assert_ends(result, 0, f"{path}: messages of 2 formats: canal from line 1 on, oms_default from line 3 on\n")
    assert result.stdout == "canal\ncanal\noms_default\ncanal\n"
    fault = run("validate", path).stderr
    assert fault.startswith(f"{path}:3: canal: $.")
    assert fault.endswith("; the message looks like oms_default\n")
    path = lines_file(tmp_path, goldens("debezium")[0], INSERT)
    said = run("encode", path, "--format", "debezium", "--out", tmp_path / "a.avro").stderr
    assert said.startswith(f"{path}: its line 2 looks like canal, read as debezium\n")
    path = lines_file(tmp_path, b"garbage", INSERT)
    said = run("encode", path, "--format", "debezium", "--out", tmp_path / "b.avro").stderr
    assert said.startswith(f"{path}: its line 2 looks like canal, read as debezium\n")


def test_formats_are_counted_from_the_start_of_each_file(tmp_path):
    """Lines are those of the file, whatever stands before it, and a file of one format has no note."""
    first, second = lines_file(tmp_path, INSERT), tmp_path / "second.jsonl"
    second.write_bytes(goldens("oms_default")[0] + b"\n" + INSERT + b"\n")
    said = f"{second}: messages of 2 formats: oms_default from line 1 on, canal from line 2 on\n"
    assert run("sniff", first, second).stderr == said


def test_json_says_what_the_tables_say(tmp_path):
    """Each line, or all of it, is JSON with the same facts, in numbers where they are numbers."""
    path = lines_file(tmp_path, INSERT, INSERT, b"{")
    sniffed = [json.loads(line) for line in run("sniff", path, "--json").stdout.splitlines()]
    assert sniffed == [{"file": str(path), "line": line, "format": "canal"} for line in (1, 2)]
    valid = json.loads(run("validate", path, "--json").stdout)
    rows = [("canal", "CREATE", 2), ("canal", None, 1)]
    counts = [dict(zip(("format", "operation", "messages"), row, strict=True)) for row in rows]
    assert valid == {"read": 3, "valid": 2, "rejected": 1, "counts": counts}
    listed = [json.loads(line) for line in run("formats", "--json").stdout.splitlines()]
    assert [one["format"] for one in listed] == list(FORMATS)
    assert {"format", "record", "fingerprint", "description"} == set(listed[0])


# sniff and validate in processes


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("sniff",), ("validate",), ("validate", "--format", "mixed")])
def test_jobs_change_nothing_of_what_is_said(tmp_path, monkeypatch, arguments):
    """Faults, places and counts are those of one job, and no process is left."""
    monkeypatch.setattr("cdcavro.files.lines.CHUNK_BYTES", 512)
    messages = [*goldens("canal"), b"{", *goldens("oms_default"), b"", b'{"zzz":1}', b"\xff", *goldens("debezium")]
    first, second = lines_file(tmp_path, *messages), tmp_path / "second.jsonl"
    second.write_bytes(b"\n".join(messages * 2))
    alone = run(*arguments, first, second)
    shared = run(*arguments, first, second, "--jobs", 3)
    assert (shared.exit_code, shared.stdout, shared.stderr) == (alone.exit_code, alone.stdout, alone.stderr)
    assert (alone.exit_code, alone.stderr.count("\n") > 8) == (1, True)


# validate


def test_validate_accepts_every_message_that_ships_with_the_project():
    """All goldens and all real messages come back exactly."""
    files = sorted(SAMPLES.glob("*/*.json*"))
    total = sum(path.read_bytes().count(b"\n") for path in files)
    result = run("validate", *files, "--format", "mixed")
    assert_ends(result, 0, "")
    assert result.stdout.endswith(f"read {total} = valid {total} + rejected 0\n")


def test_validate_counts_by_format_and_operation(tmp_path):
    """Rejects stand at the end."""
    path = lines_file(tmp_path, *goldens("oms_shareplex")[1:], b"", b'{"op":1}')
    result = run("validate", path, "--format", "oms_shareplex")
    assert result.stdout == (
        "format         operation   messages\n"
        "oms_shareplex  del                1\n"
        "oms_shareplex  ins                1\n"
        "oms_shareplex  upd                1\n"
        "oms_shareplex  (rejected)         2\n"
        "read 5 = valid 3 + rejected 2\n"
    )
    assert result.exit_code == 1


def test_validate_prints_each_fault_with_file_and_line(tmp_path):
    """Invalid UTF-8 and empty lines are faults of their messages alone."""
    path = lines_file(tmp_path, INSERT, b"", b"\xff", INSERT)
    result = run("validate", path)
    stderr = f"{path}:2: {EMPTY_LINE}\n{path}:3: canal: $: expected UTF-8, got byte 0xff at byte 0\n"
    assert_ends(result, 1, stderr)


def test_validate_tells_auto_per_file_and_mixed_per_message(tmp_path):
    """A message of another format than its file's is a fault unless the file is mixed."""
    path = lines_file(tmp_path, INSERT, INSERT, goldens("oms_default")[0])
    assert run("validate", path).exit_code == 1
    result = run("validate", path, "--format", "mixed")
    assert result.exit_code == 0
    assert [row.split()[0] for row in result.stdout.splitlines()[1:3]] == ["canal", "oms_default"]


def test_validate_of_nothing_is_fine():
    """An empty file has no fault."""
    result = run("validate", input=b"")
    assert_ends(result, 0, "")
    assert result.stdout == "format  operation  messages\nread 0 = valid 0 + rejected 0\n"


def test_validate_finds_a_value_that_does_not_come_back(monkeypatch):
    """Values are compared exactly: 1.0 is not 1."""
    decode = Format.decode_text
    monkeypatch.setattr(Format, "decode_text", lambda *given: decode(*given).replace(b'"id":1', b'"id":1.0'))
    result = run("validate", input=b'{"database":"a","type":"INSERT","data":[{"id":1}]}')
    assert_ends(result, 1, "-:1: oms_canal: $.data[0].id: expected the same value back, got another one\n")


# encode and decode


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_real_messages_go_to_a_container_file_and_come_back_exactly(tmp_path, codec):
    """Fastavro reads the file too."""
    out = tmp_path / "shop.avro"
    result = run("encode", SHOP, "--out", out, "--codec", codec)
    assert_ends(result, 0, "read 188 = written 188 + rejected 0\n")
    with out.open("rb") as stream:
        assert len(list(fastavro.reader(stream))) == 188
    back = run("decode", out)
    assert_ends(back, 0, "")
    assert all(same(*pair) for pair in zip(values(back.stdout_bytes), map(jsontext.parse, shop_canal()), strict=True))


@pytest.mark.parametrize("format", FORMATS)
def test_goldens_of_every_format_go_through_pipes(format):
    """Standard input to standard output, both ways; the header tells the format."""
    packed = run("encode", "--format", format, input=b"\n".join(goldens(format)))
    assert packed.exit_code == 0
    back = run("decode", input=packed.stdout_bytes)
    assert back.exit_code == 0
    assert all(
        same(*pair) for pair in zip(values(back.stdout_bytes), map(jsontext.parse, goldens(format)), strict=True)
    )


def test_gzip_and_standard_input_give_the_same_payloads(tmp_path):
    """Where the bytes come from makes no difference."""
    packed = tmp_path / "shop.jsonl.gz"
    packed.write_bytes(gzip.compress(Path(SHOP).read_bytes()))
    from_gzip = run("decode", input=run("encode", packed).stdout_bytes)
    from_pipe = run("decode", "-", input=run("encode", "-", input=Path(SHOP).read_bytes()).stdout_bytes)
    assert (
        from_gzip.stdout_bytes
        == from_pipe.stdout_bytes
        == run("decode", input=run("encode", SHOP).stdout_bytes).stdout_bytes
    )


def test_line_separators_inside_values_and_carriage_returns_are_kept_apart(tmp_path):
    """U+0085 and U+2028 split no message; CRLF files convert."""
    message = '{"database":"a\u0085b\u2028c","type":"INSERT"}'.encode()
    result = run("decode", input=run("encode", lines_file(tmp_path, message + b"\r", message + b"\r")).stdout_bytes)
    assert values(result.stdout_bytes) == [jsontext.parse(message)] * 2


def test_rejects_keep_the_raw_bytes_and_say_why(tmp_path):
    """One JSON object each, from which the message can be sent again."""
    broken = [b"", b"\xff\x00", b'{"type":"INSERT","data":{}}']
    path = lines_file(tmp_path, INSERT, *broken)
    rejects = tmp_path / "rejects.jsonl"
    result = run("encode", path, "--out", tmp_path / "x.avro", "--rejects", rejects)
    sentences = [
        "canal: $: expected JSON, got an empty line",
        "canal: $: expected UTF-8, got byte 0xff at byte 0",
        "canal: $.data: expected array, got object",
    ]
    stderr = "".join(f"{path}:{i}: {sentence}\n" for i, sentence in enumerate(sentences, 2))
    assert_ends(result, 1, stderr + "read 4 = written 1 + rejected 3\n")
    kept = [json.loads(line) for line in rejects.read_bytes().splitlines()]
    assert [base64.b64decode(one.pop("raw")) for one in kept] == broken
    assert kept == [
        {"file": path, "line": 2, "format": "canal", "path": "$", "reason": "expected JSON, got an empty line"},
        {
            "file": path,
            "line": 3,
            "format": "canal",
            "path": "$",
            "reason": "expected UTF-8, got byte 0xff at byte 0",
        },
        {"file": path, "line": 4, "format": "canal", "path": "$.data", "reason": "expected array, got object"},
    ]


def test_a_message_that_is_too_long_is_a_reject_of_its_beginning(tmp_path, monkeypatch):
    """Memory is bounded; the reason tells the length."""
    monkeypatch.setattr(jsontext, "MAX_LENGTH", 100_000)
    rejects = tmp_path / "rejects.jsonl"
    result = run("encode", "--format", "oms_canal", "--rejects", rejects, input=b"[" * 200_000)
    stderr = "-:1: oms_canal: $: expected at most 100000 bytes, got 200000\nread 1 = written 0 + rejected 1\n"
    assert_ends(result, 1, stderr)
    assert base64.b64decode(json.loads(rejects.read_bytes())["raw"]) == b"[" * 65_536


def test_the_sentences_on_standard_error_are_bounded():
    """Twenty, and how many more there are."""
    result = run("encode", input=INSERT + b"\n" * 31)
    sentences = "".join(f"-:{line}: {EMPTY_LINE}\n" for line in range(2, 22))
    assert_ends(result, 1, sentences + "... and 10 more\nread 31 = written 1 + rejected 30\n")


@pytest.mark.parametrize(
    ("allowed", "code"), [("0", 1), ("1", 1), ("2", 0), ("3", 0), ("19%", 1), ("20%", 0), ("19.999%", 1), ("100%", 0)]
)
@pytest.mark.parametrize("command", ["encode", "validate"])
def test_max_rejects_is_a_number_or_a_share(command, allowed, code):
    """2 of 10 messages are rejected here."""
    result = run(command, "--max-rejects", allowed, input=INSERT + b"\n\n\n" + (INSERT + b"\n") * 7)
    assert result.exit_code == code
    assert "= " + ("written" if command == "encode" else "valid") + " 8 + rejected 2\n" in result.output


@pytest.mark.parametrize("value", ["", "-1", "1.5", "101%", "%", "five", "²", "1e3%"])
def test_max_rejects_refuses_what_is_neither(value):
    """Wrong usage."""
    sentence = f"Invalid value for '--max-rejects': expected a number such as 5 or a share such as 2%, got {value!r}"
    assert_ends(run("validate", "--max-rejects", value, input=b""), 2, usage("validate", sentence))
    said = run("sync", "--config", __file__, "--max-rejects", value, input=b"")
    assert (said.exit_code, said.stderr.splitlines()[-1]) == (2, f"Error: {sentence}")


def test_a_share_of_no_messages_allows_no_rejects():
    """There is nothing to divide by."""
    assert parse_max_rejects("0%").allows(0, 0)
    assert not parse_max_rejects("0%").allows(1, 1)


def test_an_empty_file_is_a_container_file_only_with_a_format(tmp_path):
    """With one it becomes a file without messages; without, nothing is written, which is said and is no error."""
    out = tmp_path / "out.avro"
    said = "there are no messages, so no file is written; with --format NAME, one without messages is\n"
    balance = "read 0 = written 0 + rejected 0\n"
    assert_ends(run("encode", "--out", out, input=b""), 0, said + balance)
    assert list(tmp_path.iterdir()) == []
    assert_ends(run("encode", "--out", out, "--format", "oms_canal", input=b""), 0, balance)
    assert run("decode", out).stdout == ""


def test_an_output_that_exists_is_kept_without_force(tmp_path):
    """Neither --out nor --rejects replaces a file unasked."""
    out, rejects = tmp_path / "out.avro", tmp_path / "rejects.jsonl"
    rejects.write_bytes(b"mine")
    refused = "expected a new file (--force replaces one), got one that exists\n"
    assert_ends(run("encode", SHOP, "--out", out, "--rejects", rejects), 2, f"Error: {rejects}: {refused}")
    assert rejects.read_bytes() == b"mine"
    assert not out.exists()
    assert run("encode", SHOP, "--out", out, "--rejects", rejects, "--force").exit_code == 0
    assert rejects.read_bytes() == b""
    assert_ends(run("decode", out, "--out", rejects), 2, f"Error: {rejects}: {refused}")
    assert run("decode", out, "--out", rejects, "--force").exit_code == 0
    assert len(values(rejects.read_bytes())) == 188
    assert sorted(tmp_path.iterdir()) == [out, rejects]


@pytest.mark.parametrize("out", [".", "out", "out/payloads/.."])
def test_the_job_does_not_remove_its_input(tmp_path, monkeypatch, out):
    """What an earlier run wrote goes before anything is read, so no input may be among it."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / out / "payloads" if out == "." else tmp_path / "out" / "payloads"
    folder.mkdir(parents=True)
    path = folder / "in.jsonl"
    path.write_bytes(b"{}")
    result = run("run", path, "--out", out, "--force")
    assert result.exit_code == 2
    assert "in.jsonl is in a folder that this command writes" in result.stderr
    assert path.read_bytes() == b"{}"


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_output_is_not_the_input(tmp_path, force):
    """Not even by --force: a file is not replaced by what is made of it."""
    path = tmp_path / "in.avro"
    assert run("encode", SHOP, "--out", path).exit_code == 0
    before = path.read_bytes()
    result = run("decode", path, "--out", tmp_path / "." / "in.avro", *force)
    assert_ends(result, 2, usage("decode", "--out names the input"))
    assert path.read_bytes() == before


def test_out_and_rejects_are_two_files(tmp_path):
    """One would replace the other."""
    result = run("encode", SHOP, "--out", tmp_path / "x", "--rejects", tmp_path / "." / "x")
    assert_ends(result, 2, usage("encode", "two of the input and the outputs are the same file"))


def test_a_failure_leaves_no_file_behind(tmp_path):
    """Gzip that ends too early stops the command."""
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(Path(SHOP).read_bytes())[:-50])
    result = run("encode", path, "--out", tmp_path / "x.avro", "--rejects", tmp_path / "r.jsonl")
    assert_ends(result, 2, f"Error: {path}: expected a whole gzip file, got one that ends too early\n")
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_to_the_output_stays_a_link(tmp_path):
    """What it leads to is replaced."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    assert run("encode", SHOP, "--out", link, "--force").exit_code == 0
    assert link.is_symlink()
    assert target.read_bytes().startswith(b"Obj\x01")


def test_a_device_is_written_and_not_replaced():
    """/dev/null is no file that exists."""
    assert run("encode", SHOP, "--out", os.devnull).exit_code == 0
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("command", ["sniff", "validate", "encode", "decode"])
def test_a_missing_file_is_wrong_usage(command):
    """Before anything is read or written."""
    name, kind = ("[INPUT]", "File") if command == "decode" else ("[INPUT]...", "Path")
    sentence = f"Invalid value for '{name}': {kind} 'none.jsonl' does not exist."
    assert_ends(run(command, "none.jsonl"), 2, usage(command, sentence))


def test_an_output_in_a_missing_folder_is_an_error(tmp_path):
    """One sentence, no traceback."""
    out = tmp_path / "none" / "x.avro"
    stderr = f"Error: {out}: expected a file that can be written, got 'No such file or directory'\n"
    assert_ends(run("encode", SHOP, "--out", out), 2, stderr)


def test_decode_refuses_what_is_no_container_file():
    """JSON lines, for one."""
    stderr = f"Error: {SHOP}: expected an Avro container file, got one that starts with '{{\"da'\n"
    assert_ends(run("decode", SHOP), 2, stderr)


def packed(payloads, schema, codec="null"):
    """Return the bytes of a container file around payloads."""
    stream = io.BytesIO()
    writer = ContainerWriter(stream, schema, codec=codec)
    for payload in payloads:
        writer.write(payload)
    writer.flush()
    return stream.getvalue()


def test_decode_refuses_a_schema_that_is_no_wire_schema():
    """And one that the given format cannot read."""
    other = packed([b"\x00"], cdcavro.parse_schema('"string"'))
    known = ", ".join(FORMATS)
    stderr = f"Error: -: expected a wire schema in the header ({known}), or --format NAME, got another schema\n"
    assert_ends(run("decode", input=other), 2, stderr)
    stderr = "Error: -: schema $: cdcavro.oms.Canal cannot read string\n"
    assert_ends(run("decode", "--format", "oms_canal", input=other), 2, stderr)


def test_decode_tells_which_payload_is_broken():
    """The messages before it are not taken for the whole."""
    canal = get_format("oms_canal")
    good = canal.encode(INSERT)
    result = run("decode", input=packed([good, good[:-1]], canal.schema))
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: -: message 2: oms_canal: $")
    assert result.stderr.endswith(", where the payload ends\n")


def test_decode_reads_what_an_older_schema_wrote():
    """What the present schema does not have comes back under the name that it was sent with."""
    canal = get_format("oms_canal")
    older = Format("older", cdcavro.parse_schema(canal.schema.json.replace('"name": "gtid"', '"name": "gtidOld"')))
    payload = older.encode(b'{"type":"INSERT","database":"a","gtidOld":"x"}')
    result = run("decode", input=packed([payload], older.schema))
    assert_ends(result, 0, "")
    assert values(result.stdout_bytes) == [{"type": "INSERT", "database": "a", "gtidOld": "x"}]


# counts and operations


@pytest.mark.parametrize("format", FORMATS)
def test_the_operation_of_every_format_is_found(format):
    """It is the member that the schema marks, as it is spelled in the message; Debezium's statements have none."""
    own = get_format(format)
    found = {operation_of(own.parse(message), own) for message in goldens(format)} - {"(none)", "TOMBSTONE"}
    spelled = b"".join(goldens(format))
    assert all(f'"{one}"'.encode() in spelled for one in found)
    assert operation_of({}, own) == "(none)"


def test_tombstones_are_counted_as_such():
    """With an embedded schema and without; a line that is null says nothing of a key, and is a fault."""
    lines = [b'{"topic":"t","key":{"id":1},"value":null}', b'{"key":{"id":1},"value":{"schema":null,"payload":null}}']
    result = run("validate", "--format", "debezium", input=b"\n".join([*lines, b'{"ts_ms":1}', b"null"]))
    assert [row.split() for row in result.stdout.splitlines()[1:]] == [
        ["debezium", "(none)", "1"],
        ["debezium", "TOMBSTONE", "2"],
        ["debezium", "(rejected)", "1"],
        ["read", "4", "=", "valid", "3", "+", "rejected", "1"],
    ]
    assert result.stderr == "-:4: debezium: $: expected object, got null\n"


def test_an_unknown_operation_is_counted_as_it_is_spelled():
    """Not as OTHER; what a terminal could stumble over is escaped, and its length bounded."""
    messages = [b'{"database":"a","type":"MERGE"}', b'{"database":"a","type":"\\u001b[2J"}']
    messages.append(b'{"database":"a","type":"' + b"x" * 100 + b'"}')
    rows = [row.split()[1] for row in run("validate", input=b"\n".join(messages)).stdout.splitlines()[1:4]]
    assert rows == ["'\\x1b[2J'", "'" + "x" * 40 + "...'", "MERGE"]


def test_the_number_of_rows_is_bounded():
    """Whatever messages say, the table stays a table."""
    counts = Counts()
    for i in range(MAX_ROWS + 50):
        counts.add("oms_canal", f"op{i}")
    counts.reject(None, 3)
    rows = counts.table().splitlines()
    assert len(rows) == 1 + MAX_ROWS + 2
    assert rows[1].split() == ["oms_canal", "(others)", "50"]
    assert rows[-1].split() == ["(unknown)", "(rejected)", "3"]
    assert counts.balance("written") == "read 253 = written 250 + rejected 3"


# real processes

# Without it: output that is not buffered fails at once, and not again when the interpreter ends.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


@pytest.mark.slow
def test_output_that_nobody_reads_ends_quietly():
    """Not even the interpreter complains at its end."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    result = subprocess.run(
        [COMMAND, "formats"], stdout=write_end, stderr=subprocess.PIPE, check=False, env=ENVIRONMENT
    )
    os.close(write_end)
    assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_a_full_disk_is_one_sentence():
    """No traceback."""
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run([COMMAND, "formats"], stdout=full, stderr=subprocess.PIPE, check=False, env=ENVIRONMENT)
    assert (result.returncode, result.stderr) == (2, b"Error: the output failed: No space left on device\n")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="a shell closes the streams")
@pytest.mark.parametrize(
    ("arguments", "closed", "code", "said"),
    [
        (["encode", SHOP, "--out", "x.avro"], "2>&-", 0, b""),
        (["sniff", SHOP], "2>&-", 0, b""),
        (["nonsense"], "2>&-", 2, b""),
        (["sniff", SHOP], ">&-", 2, b"Error: -: expected an open standard stream, got a closed one\n"),
        (["encode", SHOP], ">&-", 2, b"Error: -: expected an open standard stream, got a closed one\n"),
    ],
)
def test_a_standard_stream_that_is_closed_gives_no_traceback(tmp_path, arguments, closed, code, said):
    """Nothing is said where nobody listens; output that goes nowhere is an error."""
    given = f"{shlex.join(map(str, [COMMAND, *arguments]))} {closed}"
    done = subprocess.run(["sh", "-c", given], cwd=tmp_path, capture_output=True, check=False, env=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.slow
def test_a_closed_pipe_ends_quietly(tmp_path):
    """`cdcavro decode | head -1` has no complaint."""
    path = tmp_path / "many.jsonl"
    path.write_bytes(Path(SHOP).read_bytes() * 20)
    with running([COMMAND, "sniff", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdout.read(5) == b"canal"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_no_file(tmp_path, number, code):
    """Ctrl-C is no fault, nor is a system that ends all programs."""
    out = tmp_path / "x.avro"
    arguments = [COMMAND, "encode", "--format", "oms_canal", "--out", out]
    with running(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not list(tmp_path.iterdir()):
            assert process.poll() is None
            time.sleep(0.01)
        end(process, number)
        assert process.stderr.read() == b""
    assert process.returncode == code
    assert list(tmp_path.iterdir()) == []


INTERRUPTING = """
import os, signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == os.environ["INTERRUPTED_AT"]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""
# What installers make of the entry of `pyproject.toml`.
_MODULE, _FUNCTION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["cdcavro"].split(":")
SCRIPT = ["-c", f"import sys; from {_MODULE} import {_FUNCTION}; sys.exit({_FUNCTION}())"]


@pytest.mark.slow
@pytest.mark.parametrize("program", [["-m", "cdcavro"], SCRIPT], ids=["module", "script"])
@pytest.mark.parametrize(
    ("module", "arguments"),
    [("cdcavro.cli", "formats"), ("cdcavro.wire.formats", "formats"), ("cdcavro.cli.commands.sync", "--help")],
)
def test_an_interrupt_of_an_import_is_none_of_the_programs_faults(tmp_path, program, module, arguments):
    """Ctrl-C right after the return key: neither a traceback, nor that anything was aborted."""
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING)
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    given = {**os.environ, "PYTHONPATH": paths, "INTERRUPTED_AT": module}
    # What finds modules where the engine is off is asked before the finder that interrupts.
    given.pop("CDCAVRO_ENGINE", None)
    command = [sys.executable, *program, arguments]
    done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_the_commands_import_no_spark_and_no_rich():
    """So that they start fast."""
    code = "import sys, cdcavro.cli; print(sorted({'rich', 'pyspark', 'pyarrow', 'pandas'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        """Return so."""
        return True


@pytest.mark.parametrize(
    ("stderr", "seconds", "is_shown"), [(Terminal, 2, True), (Terminal, 0.5, False), (io.StringIO, 2, False)]
)
def test_progress_is_shown_on_a_terminal_after_a_second(monkeypatch, stderr, seconds, is_shown):
    """Not for quick work, and in a log not so soon."""
    stream, now = stderr(), [100.0]
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    with console.Progress("encoding", 1000) as shown:
        shown.advance(10)
        now[0] += seconds
        shown.advance(500)
        shown.restart("writing", 500)
        assert "writing" not in stream.getvalue()
        shown.advance(250)
    assert ("encoding" in stream.getvalue()) is is_shown
    assert ("writing" in stream.getvalue()) is is_shown


def test_progress_is_a_line_every_half_minute_in_a_log(monkeypatch):
    """Of input whose size is not known, too."""
    stream, now = io.StringIO(), [100.0]
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    for total in (8_000_000, None):
        with console.Progress("reading", total) as shown:
            for _ in range(7):
                now[0] += 10
                shown.advance(1_000_000)
    assert stream.getvalue().splitlines() == [
        *("reading: 3.0 of 8.0 MB", "reading: 6.0 of 8.0 MB"),
        *("reading: 3.0 MB", "reading: 6.0 MB"),
    ]


@pytest.mark.slow
@pytest.mark.skipif(not LOCKS.exists(), reason="the system does not list locks")
def test_what_a_kill_left_goes_with_the_next_run(tmp_path):
    """Nothing half-written has the file's name; what another run writes at the moment stays."""
    out = tmp_path / "x.avro"
    arguments = [COMMAND, "encode", "--format", "oms_canal", "--out", out]

    def begun() -> subprocess.Popen[bytes]:
        before = {*tmp_path.iterdir()}
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        # A file is there a moment before it is held; to try for its lock would take it from who is about to.
        while not any(f":{path.stat().st_ino} " in LOCKS.read_text() for path in {*tmp_path.iterdir()} - before):
            assert process.poll() is None
            time.sleep(0.01)
        return process

    killed = begun()
    killed.kill()
    killed.communicate()
    (left,) = tmp_path.iterdir()
    other = begun()
    (held,) = {*tmp_path.iterdir()} - {left}
    foreign = tmp_path / "x.avro.mine.part"
    foreign.touch()
    for path in (left, held, foreign):
        os.utime(path, (0, 0))
    assert CliRunner().invoke(main, ["encode", "--format", "oms_canal", "--out", str(out)], input=b"").exit_code == 0
    assert {*tmp_path.iterdir()} == {out, held, foreign}
    other.communicate(b"")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["encode", "--format", "canal", "--jobs", "2"], ["tables", "--jobs", "2"]])
def test_a_command_does_with_few_open_files(tmp_path, arguments):
    """Thirty-two, and two hundred tables: files are closed on the way."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\n".join(stream_trial.KINDS["tables"](i) for i in range(200)))
    out = tmp_path / "out"
    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (32, 32))
    ran = subprocess.run(
        [COMMAND, *arguments, "--out", out, path], capture_output=True, preexec_fn=limit, check=False, timeout=50
    )
    assert ran.returncode == 0, ran.stderr
    assert b"read 200 = " in ran.stdout + ran.stderr


def test_a_folder_that_is_read_only_is_one_sentence():
    """Of the kernel's, which root cannot write to either."""
    ran = CliRunner().invoke(main, ["tables", "--out", "/proc/self/out", str(SAMPLES / "canal" / "shop.jsonl")])
    assert (ran.exit_code, ran.output.count("\n")) == (2, 1)
    ran = CliRunner().invoke(main, ["encode", "--out", "/proc/self/x.avro", str(SAMPLES / "canal" / "shop.jsonl")])
    assert (ran.exit_code, ran.output.count("\n")) == (2, 1)


# inputs: files, folders, packed, marked

READERS = {
    "sniff": (),
    "validate": (),
    "encode": ("--out",),
    "transcode": ("--to", "oms_canal", "--out"),
    "tables": ("--out",),
}
SMALL = [json.dumps({**json.loads(INSERT), "id": i}).encode() for i in range(4)]


def zstandard(raw):
    """Pack bytes."""
    return pa.Codec("zstd").compress(raw, asbytes=True)


def read_by(command, place, *inputs):
    """Run a command on inputs; its output goes to a new place."""
    options = READERS[command]
    return run(command, *inputs, *options, *([place] if options else ()))


def outcome(command, place, *inputs):
    """Return what a command makes of inputs."""
    result = read_by(command, place, *inputs)
    assert result.exit_code == 0, result.stderr
    if command == "tables":
        return result.stdout, sorted(path.name for path in place.rglob("*"))
    if command == "encode":
        return result.stderr, run("decode", place).stdout
    if command == "sniff":
        return [line.rpartition(" ")[2] for line in result.stdout.splitlines()]
    return result.stdout, result.stderr, place.read_text() if command == "transcode" else ""


@pytest.mark.parametrize("command", READERS)
def test_commands_that_read_messages_take_files_and_folders_plain_and_packed(tmp_path, command):
    """One file has what several have, in their order, and a folder of them, packed by name or by its bytes."""
    whole = tmp_path / "whole.jsonl"
    whole.write_bytes(b"".join(line + b"\n" for line in SMALL))
    parts = tmp_path / "parts"
    parts.mkdir()
    pack = zstandard
    files = {"a.jsonl": SMALL[0], "b.gz": gzip.compress(SMALL[1]), "c.ZST": pack(SMALL[2]), "d.jsonl": pack(SMALL[3])}
    for name, content in files.items():
        (parts / name).write_bytes(content)
    expected = outcome(command, tmp_path / "1", whole)
    assert outcome(command, tmp_path / "2", parts) == expected
    assert outcome(command, tmp_path / "3", *(parts / name for name in files)) == expected


@pytest.mark.parametrize("command", READERS)
def test_a_reject_of_several_files_says_which_file_and_line(tmp_path, command):
    """Its number is that in its own file."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(SMALL[0] + b"\n\n" + SMALL[1] + b"\n")
    result = read_by(command, tmp_path / "out", tmp_path / "a", tmp_path / "b")
    assert result.exit_code == 1
    faults = [line for line in result.stderr.splitlines() if "empty line" in line]
    assert [line.partition(": ")[0] for line in faults] == [f"{tmp_path / name}:2" for name in ("a", "b")]


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("content", [b"", None])
def test_no_messages_are_no_error(tmp_path, command, content):
    """An empty file and a folder without files alike."""
    path = tmp_path / "in"
    path.mkdir() if content is None else path.write_bytes(content)
    result = read_by(command, tmp_path / "out", path)
    assert result.exit_code == 0
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", READERS)
def test_a_byte_order_mark_is_passed_over_and_said(tmp_path, command):
    """The first line is a message, also of a packed file and of standard input."""
    path = tmp_path / "in.jsonl"
    raw = b"\xef\xbb\xbf" + SMALL[0] + b"\n" + SMALL[1]
    said = "a byte order mark at the start is skipped"
    for i, content in enumerate((raw, gzip.compress(raw))):
        path.write_bytes(content)
        result = read_by(command, tmp_path / f"out{i}", path)
        assert (result.exit_code, result.stderr.count(f"{path}: {said}")) == (0, 1)
        result = run(command, *READERS[command], *([tmp_path / f"in{i}"] if READERS[command] else ()), input=content)
        assert (result.exit_code, result.stderr.count(f"-: {said}")) == (0, 1)


@pytest.mark.parametrize("command", READERS)
def test_only_twenty_faults_of_a_run_are_printed(tmp_path, command):
    """And how many more there are, over all files."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(SMALL[0] + b"\n" + b"{\n" * 30)
    result = read_by(command, tmp_path / "out", tmp_path / "a", tmp_path / "b")
    assert result.exit_code == 1
    assert (
        sum(line.startswith(str(tmp_path / "a") + ":") and "expected" in line for line in result.stderr.splitlines())
        == 20
    )
    assert "... and 40 more" in result.stderr.splitlines()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"Obj\x01", "an Avro container file, which `cdcavro decode` reads"),
        (b"PK\x03\x04", "a zip archive"),
        (bz2.compress(SMALL[0]), "a bzip2 file"),
        (lzma.compress(SMALL[0]), "an xz file"),
        (SMALL[0].decode().encode("utf-16"), "text in UTF-16: messages are UTF-8"),
    ],
)
@pytest.mark.parametrize("command", READERS)
def test_what_is_no_text_is_named(tmp_path, command, content, kind):
    """Once, and not line by line."""
    path = tmp_path / "in.jsonl"
    path.write_bytes(content)
    expected = f"Error: {path}: expected JSON lines, plain or packed with gzip or Zstandard, got {kind}\n"
    assert_ends(read_by(command, tmp_path / "out", path), 2, expected)
    assert [one.name for one in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize("end", ["cut", "broken", "none"])
def test_zstandard_that_is_faulty_is_one_sentence(tmp_path, end):
    """As gzip is."""
    path = tmp_path / "in.zst"
    packed = zstandard(b"".join(line + b"\n" for line in SMALL) * 100)
    path.write_bytes({"cut": packed[:-20], "broken": packed[:10] + b"\xff" * 40 + packed[50:], "none": SMALL[0]}[end])
    said = {"cut": "a whole Zstandard file, got one that ends too early"}.get(
        end, "a Zstandard file, got one that is damaged or none"
    )
    assert_ends(run("validate", path), 2, f"Error: {path}: expected {said}\n")


def test_zstandard_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    """It is an extra."""
    path = tmp_path / "in.zst"
    path.write_bytes(zstandard(SMALL[0]))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = "Error: pyarrow is not installed, which unpacks Zstandard: pip install 'cdcavro[arrow]'\n"
    assert_ends(run("validate", path), 2, said)


def test_no_output_lies_in_a_folder_that_is_read(tmp_path):
    """The next run would read it."""
    (tmp_path / "a.jsonl").write_bytes(SMALL[0])
    result = run("encode", tmp_path, "--out", tmp_path / "a.avro")
    assert_ends(result, 2, usage("encode", f"{tmp_path / 'a.avro'} lies in {tmp_path}, which is read"))


@pytest.mark.parametrize("command", [name for name in READERS if name != "sniff"])
@pytest.mark.parametrize("lines", [4, 250])
def test_messages_that_look_like_another_format_than_the_stated_are_said_once(tmp_path, command, lines):
    """Debezium's format takes nearly all, with every member in extras; whatever fits is no matter."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"".join(line + b"\n" for line in (SMALL * 100)[:lines]))
    said = f"{tmp_path / 'a'}: it begins with {min(lines, 100)} messages that look like canal, read as "
    for format, count in (("debezium", 1), ("canal", 0), ("oms_canal", 0)):
        result = run(
            command,
            tmp_path / "a",
            tmp_path / "b",
            "--format",
            format,
            *READERS[command],
            *([tmp_path / format] if READERS[command] else ()),
        )
        assert result.stderr.count("look like") == result.stderr.count(said + format) == count


@pytest.mark.parametrize("place", ["flat", "flat/below/it"])
def test_a_place_that_cannot_be_a_folder_is_told_before_spark_starts(tmp_path, monkeypatch, place):
    """With its path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flat").touch()
    result = run("run", SHOP, "--out", place)
    got = shown(tmp_path / "flat")
    said = f"Error: {place}: expected a folder, or a place for one, got {got}, which is no folder\n"
    assert_ends(result, 2, said)
    assert_ends(run("run", "none", "--out", "out"), 2, "Error: none: expected a file or folder, got none\n")


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_a_signal_waits_for_the_end_of_an_import(number, raised):
    """It interrupts nothing before, is acted on once, and the handlers are then what they were."""

    def end(*_: object) -> None:
        raise Terminated

    before = [signal.signal(signal.SIGTERM, end), signal.signal(signal.SIGINT, signal.default_int_handler)]
    done = []
    try:
        with pytest.raises(raised) as found, signals_wait():
            done.extend((signal.raise_signal(number), signal.raise_signal(number)))
        with signals_wait():
            done.append("imported")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])
    assert (done, found.type) == ([None, None, "imported"], raised)


PROGRAM = """
import hashlib, signal, sys
for number in (signal.SIGINT, signal.SIGTERM):
    # What Python would do, it does when the call is over.
    signal.signal(number, lambda *_: None)
from cdcavro.cli.group import second_signal_ends
with second_signal_ends(lambda: print("what was done", file=sys.stderr)):
    print("begun", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(2, 130), (15, 143)])
def test_a_second_signal_ends_a_process_that_heeds_none(number: int, code: int):
    """The first one says what is waited for, the second one what was done."""
    command = [sys.executable, "-c", PROGRAM]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        assert "Ctrl-C again ends at once" in process.stderr.readline()
        process.send_signal(number)
        assert process.stderr.read() == "what was done\n"
    assert process.returncode == code


def test_signals_wake_again_what_they_woke_before():
    """A program that calls a command has its own file descriptor back, whatever ended the command."""
    ours, theirs = socket.socketpair()
    number = ours.fileno()
    with ours, theirs:
        ours.setblocking(False)
        before = signal.set_wakeup_fd(number)
        try:
            with pytest.raises(KeyError), second_signal_ends(lambda: None):
                raise KeyError
        finally:
            left = signal.set_wakeup_fd(before)
    assert left == number


def _inspected(*arguments, input=None):
    """Return what `inspect --json` says, and its exit code."""
    done = run("inspect", *arguments, "--json", input=input)
    return json.loads(done.stdout), done.exit_code


def test_inspect_says_what_is_in_a_file_and_how_to_go_on(tmp_path):
    """Formats, tables with keys, columns and operations, and commands that take the file as it is."""
    (tmp_path / "a b.jsonl").write_bytes((SAMPLES / "canal" / "shop.jsonl").read_bytes())
    done = run("inspect", tmp_path / "a b.jsonl")
    assert done.exit_code == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert done.stdout.startswith("read 188 messages, 0 faulty\n")
    assert ["shop.orders", "1", "6", "9", "tenant,", "order_id"] in lines
    assert "shop.big: id int, k varchar(20), n bigint, ts timestamp(6), p decimal(18,6)" in done.stdout.splitlines()
    assert "1 table without a key in these messages" in done.stderr
    commands = [shlex.split(line)[1:] for line in done.stdout.partition("next:")[2].splitlines() if line]
    assert [command[0] for command in commands] == ["encode", "tables", "sync"]
    with contextlib.chdir(tmp_path):
        for command in commands[:2]:
            assert run(*command).exit_code == 0, command
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a b.jsonl", "messages.avro", "tables"]


@pytest.mark.parametrize("format", FORMATS)
def test_inspect_counts_what_validate_and_tables_count(format):
    """Every message and every row of every format's samples is counted once."""
    said, code = _inspected(SAMPLES / format)
    texts = [line for file in sorted((SAMPLES / format).iterdir()) for line in file.read_bytes().splitlines()]
    made = [one for text in texts for one in cdcavro.to_changes(text, cdcavro.sniff(text))]
    counted = Counter(said["other_changes"])
    for table in said["tables"]:
        counted.update(table["operations"])
    assert (code, said["faulty"], said["whole"]) == (0, 0, True)
    assert sum(one["messages"] for one in said["formats"]) == said["read"] == len(texts)
    assert counted == Counter(one.op for one in made)


def test_inspect_tells_formats_and_faults_by_their_first_lines(tmp_path):
    """With the files that are read behind each other, plain and packed, and code 1 for faults."""
    canal, other = (next(iter(goldens(format))) for format in ("canal", "oms_shareplex"))
    (tmp_path / "a.jsonl").write_bytes(canal + b"\n{\n" + other)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b"\n".join([canal, b"[1]", b'{"a":1}', *[b"{"] * 30])))
    said, code = _inspected(tmp_path)
    a, b = (str(tmp_path / name) for name in ("a.jsonl", "b.jsonl.gz"))
    assert (code, said["read"], said["faulty"], len(said["faults"])) == (1, 36, 33, 20)
    formats = {one["format"]: (one["messages"], one["first"]) for one in said["formats"]}
    assert formats == {"canal": (2, f"{a}:1"), "oms_shareplex": (1, f"{a}:3")}
    assert [(fault["file"], fault["line"]) for fault in said["faults"][:3]] == [(a, 2), (b, 2), (b, 3)]
    assert said["faults"][0]["reason"] == "expected JSON, got text that ends too early, at character 1"
    assert any("--format mixed" in command for command in said["next"])
    shown = run("inspect", tmp_path)
    assert "  ... and 13 more" in shown.stdout.splitlines()
    assert "a message must stand on one line" in shown.stderr


@pytest.mark.parametrize(
    "text", ['{\n "type": 1\n}\n', '{"type": "INSERT",\n "id": 1}\n', '[{"id": 1},\n {"id": 2}]\n']
)
def test_inspect_says_how_messages_on_several_lines_come_on_one(tmp_path, text):
    """Pretty-printed ones, and those of an array; of a fault further down it does not speak."""
    hint = (
        "a message must stand on one line: `jq -c . FILE` writes each on one, and `jq -c '.[]' FILE` those of an array"
    )
    (tmp_path / "a.json").write_text(text)
    assert hint in run("inspect", tmp_path).stderr.splitlines()
    (tmp_path / "a.json").write_text('{"a": 1}\n{"type":\n')
    assert hint not in run("inspect", tmp_path).stderr


@pytest.mark.slow
def test_inspect_reads_the_first_messages_unless_all_are_asked_for(tmp_path):
    """And says so; what is behind them is not even opened."""
    canal = next(iter(goldens("canal")))
    (tmp_path / "a.jsonl").write_bytes((canal + b"\n") * 10_001)
    (tmp_path / "b.jsonl").write_bytes(b"{")
    said, code = _inspected(tmp_path)
    assert (code, said["read"], said["whole"], said["faulty"]) == (0, 10_000, False, 0)
    assert run("inspect", tmp_path).stdout.startswith("read the first 10,000 messages, 0 faulty; --all reads all\n")
    said, code = _inspected(tmp_path, "--all")
    assert (code, said["read"], said["whole"], said["faulty"]) == (1, 10_002, True, 1)


def test_inspect_bounds_the_tables_and_columns_that_it_keeps():
    """Messages may name any number of both; rows of more tables are counted together."""
    wide = json.dumps({"data": {f"c{i}": 1 for i in range(5_000)}, "meta": {"op": "ins", "table": "a.wide"}})
    narrow = [json.dumps({"data": {"id": 1}, "meta": {"op": "ins", "table": f"a.t{i}"}}) for i in range(300)]
    said, _ = _inspected(input="\n".join([wide, *narrow]))
    assert (len(said["tables"]), said["rows_of_more_tables"], said["read"]) == (200, 101, 301)
    assert max(len(table["columns"]) for table in said["tables"]) == 4_096


def test_inspect_shows_the_key_that_a_statement_says():
    """As tables of rows that do not state it have it, too."""
    said = {"schema-name": "dbo", "table-name": "t", "timestamp": "2024-02-29T12:00:00.000000Z"}
    made = {"record-type": "control", "operation": "create-table", "partition-key-type": "task-id"}
    columns = {"table-def": {"columns": {"id": {"type": "INT32"}}, "primary-key": ["id"]}}
    row = {"record-type": "data", "operation": "load", "partition-key-type": "schema-table"}
    messages = [{"control": columns, "metadata": said | made}, {"data": {"id": 1}, "metadata": said | row}]
    found, code = _inspected(input="\n".join(map(json.dumps, messages)))
    assert (code, [one["key"] for one in found["tables"]]) == (0, [["id"]])


def test_inspect_shows_the_key_and_the_types_that_a_statement_declares():
    """Wherever it stands: they are no fault of the messages then. One that is not understood is none of these."""
    usual = {"database": "d", "table": "t", "xid": 1}
    texts = ["CREATE TABLE t (id INT PRIMARY KEY, n DECIMAL(10,2))", "ALTER TABLE t FROBNICATE"]
    statements = [usual | {"type": "table-alter", "ts": 1_000, "sql": text} for text in texts]
    statements[0]["type"] = "table-create"
    rows = [usual | {"table": name, "type": "insert", "ts": 2, "data": {"id": 1, "n": 1.5}} for name in ("t", "u")]
    marks = [usual | {"type": "bootstrap-start", "ts": 1, "data": {}}] * 250
    found, code = _inspected(input="\n".join(map(json.dumps, [*marks, *rows, *statements])))
    types = [{column["name"]: column["type"] for column in one["columns"]} for one in found["tables"]]
    assert (code, [one["key"] for one in found["tables"]]) == (0, [["id"], []])
    assert types == [{"id": "INT", "n": "DECIMAL(10,2)"}, {"id": None, "n": None}]
    done = run("inspect", input="\n".join(map(json.dumps, [rows[0], *statements])))
    assert done.stderr == ""


def test_inspect_of_nothing_points_at_the_formats():
    """Standard input may be empty."""
    done = run("inspect", input="")
    assert (done.exit_code, done.stdout) == (0, "read 0 messages, 0 faulty\n\nnext:\n  cdcavro formats\n")


def test_inspect_of_framed_records_points_at_unframe(tmp_path):
    """Whichever side is framed, and beside messages that are not; a record in base64 that is no Avro is none of these."""
    records = tmp_path / "records.jsonl"
    said = "some messages are Kafka records in Avro with ids of schemas: `cdcavro unframe` decodes them with a registry"
    for sides in ({"value": "AAAAAAIAAg=="}, {"key": "AAAAAAIAAg==", "value": None}):
        records.write_text(json.dumps({"topic": "s.t", "offset": 1} | sides))
        done = run("inspect", records)
        assert said in done.stderr.splitlines()
        assert done.stdout.endswith(f"next:\n  cdcavro unframe {records} --registry URL --out messages.jsonl\n")
    records.write_bytes(records.read_bytes() + b"\n" + next(iter(goldens("canal"))))
    done = run("inspect", records)
    assert said in done.stderr.splitlines()
    assert f"  cdcavro encode {records} --format canal --out messages.avro" in done.stdout.splitlines()
    for value in ("AQAAAAIAAg==", "AAAAAA==", "no base64", 1):
        records.write_text(json.dumps({"topic": "s.t", "value": value}))
        assert "unframe" not in run("inspect", records).output


def test_a_command_that_is_suggested_takes_a_file_whose_name_begins_like_an_option(tmp_path: Path, monkeypatch):
    """It is one for a shell in the same folder."""
    (tmp_path / "-a b.jsonl").write_bytes(next(iter(goldens("canal"))))
    monkeypatch.chdir(tmp_path)
    done = run("inspect", "--", "-a b.jsonl")
    assert "  cdcavro encode './-a b.jsonl' --format canal --out messages.avro" in done.stdout.splitlines()


def test_inspect_of_faulty_messages_of_one_format_points_at_the_check_of_that():
    """Beside messages of none; of two formats, it points at the list of all."""
    debezium, canal = '{"topic": "s", "value": "text"}', next(iter(goldens("canal")), b"").decode()
    found, code = _inspected(input=f'{debezium}\n{{"a": 1}}')
    assert (code, {fault["format"] for fault in found["faults"]}) == (1, {"debezium", None})
    assert found["next"] == ["cdcavro validate FILE --format debezium"]
    broken = json.loads(canal) | {"data": 1}
    found, _ = _inspected(input=f"{debezium}\n{json.dumps(broken)}")
    assert len({fault["format"] for fault in found["faults"]} - {None}) == 2
    assert found["next"] == ["cdcavro formats"]


def test_what_inspect_prints_of_a_hostile_message_cannot_change_the_terminal():
    """Names of tables and columns are escaped, and no file name becomes a part of a command."""
    message = json.dumps({"data": {"\x1b[2J": 1}, "meta": {"op": "ins", "table": "a.\x1b]0;x\x07"}})
    done = run("inspect", input=message)
    assert "\x1b" not in done.stdout
    assert "\\x1b[2J" in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("enc", ["encode"]),
        ("encode --format gold", ["goldengate_row", "goldengate", "goldengate_tx"]),
        ("sync --format mi", ["mixed"]),
        ("tables --format au", ["auto"]),
        ("transcode --to max", ["maxwell"]),
        ("schema aw", ["aws_dms"]),
        ("diff canal canal_", ["canal_protobuf", "file"]),
        ("generate maxw", ["maxwell", "file"]),
        ("publish maxw", ["maxwell", "file"]),
        ("check ./o", ["file"]),
        ("sync --files ./o", ["file"]),
        ("run ./o", ["file"]),
        ("encode ./o", ["file"]),
        ("tables --as p", ["parquet"]),
    ],
)
def test_shells_complete_commands_formats_and_files(words: str, expected: list[str]):
    """What a shell is told of the last word: a name, or that it is a file."""
    *before, last = words.split()
    found = ShellComplete(main, {}, "cdcavro", "_CDCAVRO_COMPLETE").get_completions(before, last)
    assert [item.value if item.type == "plain" else item.type for item in found] == expected


def test_the_list_of_commands_says_of_each_what_it_does():
    """In one line of a terminal with 80 columns, whole, and in a sentence."""
    lines = CliRunner().invoke(main, ["--help"], prog_name="cdcavro", terminal_width=80).stdout.splitlines()
    listed = [line for line in lines[lines.index("Commands:") + 1 :] if re.match(r"  [a-z]+  ", line)]
    assert len(listed) == len(main.commands)
    assert [line for line in listed if not line.endswith(".") or line.endswith("...")] == []


@pytest.mark.parametrize(
    ("master", "stated", "options"),
    [
        (None, {}, "-XX:TieredStopAtLevel=1"),
        ("local[2]", {"spark.driver.extraJavaOptions": "-Dx=1"}, "-XX:TieredStopAtLevel=1 -Dx=1"),
        ("spark://host:7077", {}, None),
        (None, {"spark.master": "yarn"}, None),
    ],
)
def test_one_compiler_is_for_a_jvm_that_does_all_of_the_work(master, stated, options):
    """Executors elsewhere keep what makes them faster in the long run, and what is stated counts."""
    assert one_compiler(master, stated).get("spark.driver.extraJavaOptions") == options


def test_a_line_of_a_log_is_no_array_of_messages(tmp_path):
    """Advice on arrays is for those of objects."""
    for line, is_array in ((b"[INFO] started", False), (b' [ {"a":1}]', True), (b"[1]", False)):
        (tmp_path / "in").write_bytes(line + b"\n")
        assert (SPLIT in run("encode", str(tmp_path / "in"), "--format", "canal", "--out", "-").stderr) == is_array
