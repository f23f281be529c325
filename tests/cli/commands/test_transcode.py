"""The command `transcode`: what it writes, what it says is lost or rejected, and its exit codes."""

from __future__ import annotations

import base64
import json
from random import Random

import pytest
from click.testing import CliRunner

import cdcavro
from cdcavro.cli import main
from cdcavro.files.lines import SPLIT
from support.messages import SAMPLES, lines, shop_canal
from support.mutations import mutated
from support.roundtrip import exact

HEARTBEAT = b'{"schema":{},"payload":{"op":"MHEARTBEAT"},"version":"0.0.1"}'
CANAL_HEARTBEAT = (
    b'{"isDdl":false,"sql":"","type":"MHEARTBEAT","pkNames":null,"sqlType":null,"mysqlType":null,'
    b'"data":null,"old":null}\n'
)
CANAL_UPDATE = (
    b'{"isDdl":false,"sql":"","type":"UPDATE","pkNames":null,"sqlType":null,"mysqlType":null,'
    b'"data":[{"id":2}],"old":[{"id":1}]}\n'
)
ALONE = "expected the AFTER half of the update too, got the BEFORE half alone"
LOST = (
    "lost 2 times: $.payload.sequenceId: oms_canal has no place for it\n"
    "lost once: $: both halves come back from oms_canal as one message\n"
)
SHAREPLEX = (
    b'{"data":{"id":1},"meta":{"posttime":"2020-12-07T13:22:00","op":"ins","time":"2020-11-25T00:01:02","table":"s.t"}}'
)


def before(value, number):
    """Write the first half of a Blob update."""
    return _half("UPDATE_BEFOR", "before", value, number)


def after(value, number):
    """Write the second half of a Blob update."""
    return _half("UPDATE_AFTER", "after", value, number)


def _half(operation, image, value, number):
    payload = {"op": operation, image: {"dataColumn": {"id": value}}, "sequenceId": str(number)}
    message = {"schema": {}, "payload": payload, "version": "0.0.1"}
    return json.dumps(message, separators=(",", ":")).encode()


def run(*arguments, input=None):
    """Run the command inside this process."""
    arguments = ["transcode", *map(str, arguments)]
    return CliRunner().invoke(main, arguments, input=input, catch_exceptions=False)


def lines_file(folder, *lines):
    """Write lines into a file and give its path."""
    path = folder / "in.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def members(path):
    """Return the objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def assert_ends(result, code, stdout, stderr):
    """Check exit code and the whole of both streams."""
    assert (result.exit_code, result.stdout_bytes, result.stderr) == (code, stdout, stderr)


def assert_wrong_usage(result, sentence):
    """Check that nothing was done but to say what is wrong."""
    stderr = f"Usage: main transcode [OPTIONS] [INPUT]...\nTry 'main transcode --help' for help.\n\nError: {sentence}\n"
    assert_ends(result, 2, b"", stderr)


# halves, losses, rejects


def test_halves_are_joined_across_lines_and_losses_are_listed(tmp_path):
    """The update stands where its second half stood; losses name the line, from 1, that holds what is lost."""
    path = lines_file(tmp_path, before(1, 5), HEARTBEAT, after(2, 5))
    out, losses, rejects = tmp_path / "out.jsonl", tmp_path / "losses.jsonl", tmp_path / "rejects.jsonl"
    result = run(path, "--to", "oms_canal", "--out", out, "--losses", losses, "--rejects", rejects)
    assert_ends(
        result, 0, b"", "read 3 = transcoded 3 + without a counterpart 0 + rejected 0; wrote 2 messages\n" + LOST
    )
    assert out.read_bytes() == CANAL_HEARTBEAT + CANAL_UPDATE
    assert rejects.read_bytes() == b""
    assert members(losses) == [
        {"line": 1, "path": "$.payload.sequenceId", "value": '"5"', "reason": "oms_canal has no place for it"},
        {"line": 3, "path": "$.payload.sequenceId", "value": '"5"', "reason": "oms_canal has no place for it"},
        {"line": 3, "path": "$", "value": "", "reason": "both halves come back from oms_canal as one message"},
    ]


def test_a_half_without_its_other_half_is_a_reject_with_its_bytes(tmp_path):
    """It is told at the end by its own line, its white space kept; the others are written."""
    odd = before(3, 6).replace(b'{"id":3}', b'{ "id" : 3 }')
    path = lines_file(tmp_path, before(1, 5), odd, after(2, 5))
    out, rejects = tmp_path / "out.jsonl", tmp_path / "rejects.jsonl"
    result = run(path, "--to", "oms_canal", "--out", out, "--rejects", rejects)
    summary = "read 3 = transcoded 2 + without a counterpart 0 + rejected 1; wrote 1 message\n"
    assert_ends(result, 1, b"", f"{path}:2: datahub_blob: $: {ALONE}\n{summary}{LOST}")
    assert out.read_bytes() == CANAL_UPDATE
    (reject,) = members(rejects)
    assert base64.b64decode(reject.pop("raw")) == odd
    assert reject == {"file": str(path), "line": 2, "format": "datahub_blob", "path": "$", "reason": ALONE}


def test_a_message_at_fault_is_a_reject_and_those_behind_it_go_on(tmp_path):
    """Empty lines and text that is no JSON too."""
    path = lines_file(tmp_path, HEARTBEAT, b"", b"\xff", b'{"payload":7}', HEARTBEAT)
    rejects = tmp_path / "rejects.jsonl"
    result = run(path, "--to", "oms_canal", "--rejects", rejects)
    assert (result.exit_code, result.stdout_bytes) == (1, CANAL_HEARTBEAT * 2)
    assert [(one["line"], base64.b64decode(one["raw"])) for one in members(rejects)] == [
        (2, b""),
        (3, b"\xff"),
        (4, b'{"payload":7}'),
    ]
    *faults, summary = result.stderr.splitlines()[:4]
    assert [fault.split(": ")[0] for fault in faults] == [f"{path}:{number}" for number in (2, 3, 4)]
    assert summary == "read 5 = transcoded 2 + without a counterpart 0 + rejected 3; wrote 2 messages"


def test_no_more_than_twenty_rejects_are_shown(tmp_path):
    """All of them are in the file."""
    path = lines_file(tmp_path, *[before(1, number) for number in range(25)])
    rejects = tmp_path / "rejects.jsonl"
    result = run(path, "--to", "oms_canal", "--rejects", rejects)
    shown = "".join(f"{path}:{line}: datahub_blob: $: {ALONE}\n" for line in range(1, 21))
    summary = "read 25 = transcoded 0 + without a counterpart 0 + rejected 25; wrote 0 messages\n"
    assert_ends(result, 1, b"", f"{shown}... and 5 more\n{summary}")
    assert [one["line"] for one in members(rejects)] == list(range(1, 26))


@pytest.mark.parametrize(("most", "code"), [("0", 1), ("1", 0), ("24%", 1), ("25%", 0), ("100%", 0)])
def test_max_rejects_decides_the_exit_code_alone(tmp_path, most, code):
    """One half of four messages is alone."""
    path = lines_file(tmp_path, before(1, 5), HEARTBEAT, after(2, 5), before(3, 6))
    result = run(path, "--to", "oms_canal", "--max-rejects", most)
    summary = "read 4 = transcoded 3 + without a counterpart 0 + rejected 1; wrote 2 messages\n"
    stderr = f"{path}:4: datahub_blob: $: {ALONE}\n{summary}{LOST}"
    assert_ends(result, code, CANAL_HEARTBEAT + CANAL_UPDATE, stderr)


def test_max_rejects_that_is_no_number_is_wrong_usage(tmp_path):
    """The file is not opened."""
    sentence = "Invalid value for '--max-rejects': expected a number such as 5 or a share such as 2%, got 'x'"
    assert_wrong_usage(run(lines_file(tmp_path), "--to", "oms_canal", "--max-rejects", "x"), sentence)


def test_messages_without_a_counterpart_are_counted_as_such():
    """SharePlex has no heartbeats, and Tuple needs both images of an update: neither was transcoded."""
    result = run("--to", "oms_shareplex", input=b"\n".join([before(1, 5), HEARTBEAT, after(2, 5), before(3, 6)]))
    assert result.stderr.splitlines()[1] == (
        "read 4 = transcoded 2 + without a counterpart 1 + rejected 1; wrote 1 message"
    )
    update = b'{"type":"UPDATE","es":1609344671000,"data":[{"id":2}]}'
    summary = (
        "read 1 = transcoded 0 + without a counterpart 1 + rejected 0; wrote 0 messages\n"
        "lost once: $: datahub_tuple needs the row before the change for it\n"
    )
    assert_ends(run("--to", "datahub_tuple", input=update), 0, b"", summary)


def test_kinds_that_lose_values_come_first_however_few_they_are():
    """Before those where a value comes back in another form, or a member is there that was absent."""
    statement = (
        b'{"source":{"connector":"mysql","db":"s"},"ddl":"CREATE TABLE t","tableChanges":[{"id":"\\"s\\".\\"t\\"",'
        b'"table":{"columns":[{"name":"p","typeExpression":"DECIMAL(9,2)"}]}}]}'
    )
    row = b'{"after":{"p":"AkY="},"source":{"connector":"mysql","db":"s","table":"t","x":1},"op":"c"}'
    said = run("--to", "oms_canal", input=b"\n".join([statement, row, row, row])).stderr.splitlines()[1:]
    is_of_a_value = ["has no place for it" in line or "another value" in line for line in said]
    assert is_of_a_value == sorted(is_of_a_value, reverse=True)
    assert "lost 3 times: $.after.p: comes back from oms_canal as the same value in another form" in said
    assert "lost once: $.tableChanges: comes back from oms_canal as another value" in said


def test_kinds_of_losses_are_counted_the_most_frequent_first_and_ten_of_them_shown():
    """Elements of an array are one kind."""
    message = b'{"data":{"id":1},"meta":{"op":"ins",%s}}'
    names = b"size", b"idx", b"seq", b"rowid", b"scn", b"m1", b"m2", b"m3", b"m4", b"m5", b"m6", b"m7"
    lines = [message % b",".join(b'"%s":"1"' % name for name in names), message % b'"rowid":"2"']
    result = run("--to", "oms_canal", "--from", "oms_shareplex", input=b"\n".join(lines))
    summary, first, *rest, last = result.stderr.splitlines()
    assert summary == "read 2 = transcoded 2 + without a counterpart 0 + rejected 0; wrote 2 messages"
    assert first == "lost 2 times: $.meta.rowid: oms_canal has no place for it"
    assert len(rest) == 9
    assert all(line.startswith("lost once: $.meta.") for line in rest)
    assert last == "... and 2 other kinds of losses"


# the formats


@pytest.mark.parametrize("own", [[], ["--from", "auto"], ["--from", "canal"]])
def test_the_source_is_told_by_the_first_messages(own):
    """Real messages of Canal, of the format they are: nothing is lost, nothing changes."""
    shop = SAMPLES / "canal" / "shop.jsonl"
    result = run(shop, "--to", "canal", *own)
    assert_ends(
        result,
        0,
        shop.read_bytes(),
        "read 188 = transcoded 188 + without a counterpart 0 + rejected 0; wrote 188 messages\n",
    )


def test_real_messages_become_messages_of_the_format_wanted(tmp_path):
    """Each is told as that, and converts exactly."""
    out = tmp_path / "out.jsonl"
    assert run(SAMPLES / "canal" / "shop.jsonl", "--to", "debezium", "--out", out).exit_code == 0
    made = out.read_bytes().splitlines()
    assert made
    for line in made:
        assert exact(cdcavro.decode(cdcavro.encode(line, "debezium"), "debezium")) == exact(line)
    assert {cdcavro.sniff(line) for line in made} == {"debezium"}


@pytest.mark.parametrize(("arguments", "sent"), [([], "AkY="), (["--decimals", "string"], "5.82")])
def test_debeziums_columns_are_learned_and_decimals_are_as_the_connector_sends_them(arguments, sent):
    """From the schema changes in the same file; both are digits for Canal."""
    statement = {
        "source": {"connector": "mysql", "db": "s"},
        "ddl": "CREATE TABLE t",
        "tableChanges": [
            {"id": '"s"."t"', "table": {"columns": [{"name": "p", "typeExpression": "DECIMAL(9,2)"}]}},
        ],
    }
    row = {"after": {"p": sent}, "source": {"connector": "mysql", "db": "s", "table": "t"}, "op": "c"}
    lines = "\n".join(map(json.dumps, (statement, row))).encode()
    result = run("--to", "canal", *arguments, input=lines)
    assert json.loads(result.stdout.splitlines()[1])["data"] == [{"p": "5.82"}]


def test_a_source_that_cannot_be_told_ends_with_2_and_leaves_no_file(tmp_path):
    """An empty file has nothing to tell it by, and nothing to do."""
    none = "expected a message of a known format among the first 100, or --from NAME, got an object with 'a'"
    out, losses, rejects = tmp_path / "out.jsonl", tmp_path / "losses.jsonl", tmp_path / "rejects.jsonl"
    files = ["--out", out, "--losses", losses, "--rejects", rejects]
    path = lines_file(tmp_path, b'{"a":1}')
    assert_ends(run(path, "--to", "oms_canal", *files), 2, b"", f"Error: {path}: {none}\n")
    assert list(tmp_path.iterdir()) == [path]
    summary = "read 0 = transcoded 0 + without a counterpart 0 + rejected 0; wrote 0 messages\n"
    for own in ([], ["--from", "canal"]):
        assert_ends(run("--to", "oms_canal", *own, input=b""), 0, b"", summary)


@pytest.mark.parametrize("indent", [1, 2, "\t"])
@pytest.mark.parametrize("shape", [lambda message: message, lambda message: [message]])
def test_a_message_on_several_lines_is_told_as_that(indent, shape):
    """A pretty-printed file: with the format named each line is a reject."""
    message = json.dumps(shape({"type": "INSERT", "data": [{"id": 1}]}), indent=indent).encode()
    told = "expected a message of a known format among the first 100, or --from NAME, got one on several lines"
    sentence = SPLIT
    assert_ends(run("--to", "canal", input=message), 2, b"", f"Error: -: {told}: {sentence}\n")
    *_, last, _ = run("--to", "canal", "--from", "oms_canal", input=message).stderr.splitlines()
    assert last == f"-: {sentence}"


def test_an_array_of_messages_on_one_line_is_told_as_that():
    """With the command that puts them on lines; with the format named it is a reject."""
    message = json.dumps([{"type": "INSERT", "data": [{"id": 1}]}]).encode()
    told = "expected a message of a known format among the first 100, or --from NAME, got array"
    assert_ends(run("--to", "canal", input=message), 2, b"", f"Error: -: {told}: {SPLIT}\n")
    *_, last, _ = run("--to", "canal", "--from", "oms_canal", input=message).stderr.splitlines()
    assert last == f"-: {SPLIT}"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--to", "oms_cnal"], "Invalid value for '--to': unknown format 'oms_cnal': did you mean oms_canal?"),
        (
            ["--to", "auto"],
            f"Invalid value for '--to': unknown format 'auto': known are {', '.join(cdcavro.FORMATS)}",
        ),
        (
            ["--to", "canal", "--from", "debezum"],
            "Invalid value for '--from' / '--format': unknown format 'debezum': did you mean debezium?",
        ),
        ([], "Missing option '--to'."),
    ],
)
def test_an_unknown_format_is_wrong_usage(arguments, sentence):
    """With the nearest name; `auto` is one for the source only."""
    assert_wrong_usage(run(*arguments, input=HEARTBEAT), sentence)


# the zone


@pytest.mark.parametrize(
    ("zone", "event", "system"),
    [("Asia/Shanghai", 1606233662000, 1607318520000), ("UTC", 1606262462000, 1607347320000)],
)
def test_times_without_a_zone_are_instants_of_the_zone_named(zone, event, system):
    """SharePlex has local times, Canal milliseconds since the epoch: nothing is lost."""
    result = run("--to", "oms_canal", "--zone", zone, input=SHAREPLEX)
    made = json.loads(result.stdout)
    assert (made["es"], made["ts"], made["data"]) == (event, system, [{"id": 1}])
    assert (result.exit_code, result.stderr) == (
        0,
        "read 1 = transcoded 1 + without a counterpart 0 + rejected 0; wrote 1 message\n",
    )


def test_times_without_a_zone_are_lost_without_one():
    """Nothing is guessed, not from the machine's zone either."""
    result = run("--to", "oms_canal", input=SHAREPLEX)
    assert {"es", "ts"}.isdisjoint(json.loads(result.stdout))
    stderr = (
        "read 1 = transcoded 1 + without a counterpart 0 + rejected 0; wrote 1 message\n"
        "2 times came without a zone and stay text (most in '$.meta.time', '$.meta.posttime'); --zone gives the source's\n"
        "lost once: $.meta.posttime: oms_canal has no place for it\n"
        "lost once: $.meta.time: oms_canal has no place for it\n"
    )
    assert (result.exit_code, result.stderr) == (0, stderr)


@pytest.mark.parametrize("zone", ["Nowhere/City", "../../etc/passwd", "", "Asia", "+08:00", "a\0b"])
def test_a_zone_that_is_none_is_wrong_usage(zone):
    """Names of the time zone database only; no path leads out of it."""
    sentence = f"Invalid value for '--zone': no time zone is called {zone!a}"
    assert_wrong_usage(run("--to", "oms_canal", "--zone", zone, input=SHAREPLEX), sentence)


# the files


@pytest.mark.parametrize("pair", [("in", "out"), ("in", "losses"), ("in", "rejects"), ("out", "losses")])
def test_one_file_for_two_arguments_is_refused(tmp_path, pair):
    """By whatever names, and with --force: the input stays as it is."""
    path = lines_file(tmp_path, HEARTBEAT)
    (tmp_path / "link").symlink_to(path)
    names = {"in": path, "out": tmp_path / "o", "losses": tmp_path / "l", "rejects": tmp_path / "r"}
    names[pair[1]] = tmp_path / "link" if pair[0] == "in" else tmp_path / ".." / tmp_path.name / "o"
    files = [word for name in ("out", "losses", "rejects") for word in (f"--{name}", names[name])]
    result = run(names["in"], "--to", "oms_canal", "--force", *files)
    assert_wrong_usage(result, "two of the input and the outputs are the same file")
    assert path.read_bytes() == HEARTBEAT + b"\n"
    assert {one.name for one in tmp_path.iterdir()} == {"in.jsonl", "link"}


@pytest.mark.parametrize("arguments", [[], ["-"], ["-", "--out", "-"]])
def test_standard_streams_are_the_default(arguments):
    """Messages on standard output, the rest on standard error; rejects name the file `-`."""
    lines = b"\n".join([before(1, 5), HEARTBEAT, after(2, 5), before(3, 6)])
    result = run(*arguments, "--to", "oms_canal", input=lines)
    summary = "read 4 = transcoded 3 + without a counterpart 0 + rejected 1; wrote 2 messages\n"
    assert_ends(result, 1, CANAL_HEARTBEAT + CANAL_UPDATE, f"-:4: datahub_blob: $: {ALONE}\n{summary}{LOST}")


def test_a_file_that_exists_is_replaced_with_force_only(tmp_path):
    """It stays whole otherwise."""
    path, out = lines_file(tmp_path, HEARTBEAT), tmp_path / "out.jsonl"
    out.write_bytes(b"mine")
    refused = f"Error: {out}: expected a new file (--force replaces one), got one that exists\n"
    assert_ends(run(path, "--to", "oms_canal", "--out", out), 2, b"", refused)
    assert out.read_bytes() == b"mine"
    assert run(path, "--to", "oms_canal", "--out", out, "--force").exit_code == 0
    assert out.read_bytes() == CANAL_HEARTBEAT


def test_large_counts_have_separators(tmp_path):
    """The summary is for people."""
    message = shop_canal()[10]
    result = run(lines_file(tmp_path, *[message] * 1000), "--to", "canal", "--out", tmp_path / "out.jsonl")
    assert_ends(
        result, 0, b"", "read 1,000 = transcoded 1,000 + without a counterpart 0 + rejected 0; wrote 1,000 messages\n"
    )


def test_a_source_whose_messages_are_refused_says_why(tmp_path):
    """What the first line looks like, and what is wrong there."""
    path = tmp_path / "in.jsonl"
    path.write_text('{"topic":"t","key":"7","value":{"before":null,"after":{"id":1},"op":"c"}}\n')
    made = CliRunner().invoke(main, ["transcode", str(path), "--to", "oms_canal"])
    assert made.exit_code == 2
    assert made.stderr.endswith("got one that is refused: debezium: $.key: expected object, got string\n")


def test_halves_are_joined_across_files_and_losses_name_theirs(tmp_path):
    """As a topic that was dumped in parts has them; a half that stays alone is a reject of its own file."""
    (tmp_path / "a").write_bytes(before(1, 5) + b"\n")
    (tmp_path / "b").write_bytes(after(2, 5) + b"\n" + before(3, 6) + b"\n")
    losses, out = tmp_path / "losses", tmp_path / "out"
    result = run(tmp_path / "a", tmp_path / "b", "--to", "oms_canal", "--out", out, "--losses", losses)
    assert result.stderr.splitlines()[:2] == [
        f"{tmp_path / 'b'}:2: datahub_blob: $: {ALONE}",
        "read 3 = transcoded 2 + without a counterpart 0 + rejected 1; wrote 1 message",
    ]
    places = [(one["file"], one["line"]) for one in map(json.loads, losses.read_bytes().splitlines())]
    assert {*places} == {(str(tmp_path / "a"), 1), (str(tmp_path / "b"), 1)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "target"),
    [("canal", "debezium"), ("maxwell", "oms_shareplex"), ("datahub_blob", "oms_canal"), ("debezium", "canal")],
)
def test_jobs_change_nothing(tmp_path, monkeypatch, source, target):
    """Messages, losses, rejects, and what is said are those of one job, also where messages depend on earlier ones."""
    monkeypatch.setattr("cdcavro.files.lines.CHUNK_BYTES", 16384)
    monkeypatch.setattr("cdcavro.cli.commands.transcode._LINES", 3)
    random, messages = Random(source), [m for path in sorted((SAMPLES / source).glob("*.json*")) for m in lines(path)]
    first = lines_file(tmp_path, *messages[:60], *(mutated(random, random.choice(messages)) for _ in range(40)))
    second = tmp_path / "second.jsonl"
    second.write_bytes(b"\n".join([b"", *messages[:60]]))
    made = []
    for jobs in (1, 2):
        places = [tmp_path / f"{name}{jobs}.jsonl" for name in ("out", "losses", "rejects")]
        options = [f"--{place.stem[:-1]}={place}" for place in places]
        result = run(first, second, "--from", source, "--to", target, "--max-rejects", "99%", "--jobs", jobs, *options)
        made.append((result.exit_code, result.stderr, [place.read_bytes() for place in places]))
    assert made[0] == made[1]
    assert all(made[0][2])
