"""README's Spark examples run, and show what they say."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest

from support.messages import SAMPLES
from support.processes import running
from support.readme import blocks, is_spark


@pytest.fixture(scope="module")
def names(spark, tmp_path_factory) -> dict:
    """The names that README's Python blocks define, run one behind another on the session of the tests."""
    names: dict = {}
    with chdir(tmp_path_factory.mktemp("readme")):
        for block in blocks("python"):
            exec(compile(block, "README.md", "exec"), names)
    return names


def test_all_examples_run_and_nothing_is_lost(names):
    """Two messages in, one good and one bad out; the good one comes back through from_avro and to_avro."""
    assert (names["good"].count(), names["bad"].count()) == (1, 1)
    assert names["bad"].first().message.startswith("oms_canal: $: expected JSON, got 'not a message'")
    assert names["again"].count() == 1


def test_tables_are_shown_as_the_comments_say(names, capsys):
    """Each `show()` prints the row in the comment beside it."""
    code = "".join(block for block in blocks("python") if is_spark(block))
    said = re.findall(r"show\(.*?\) +# (\|.*\|)$", code, re.MULTILINE)
    assert len(said) == 6
    for block in blocks("python"):
        if ".show(" in block:
            exec(compile(block, "README.md", "exec"), names)
    shown = capsys.readouterr().out
    for row in said:
        assert row in shown


def test_a_payload_decodes_under_its_new_names_as_the_comment_says(names, capsys):
    """The last example prints what stands beside it."""
    (block,) = [block for block in blocks("python") if "reader=newer" in block]
    exec(compile(_schemas_again(), "README.md", "exec"), names)
    exec(compile(block, "README.md", "exec"), names)
    assert capsys.readouterr().out.strip() == re.search(r"print\(.*\) +# (.*)$", block, re.MULTILINE)[1]


def _schemas_again() -> str:
    """Return the lines of README that make the two schemas."""
    (block,) = [block for block in blocks("python") if "older, newer = json.loads" in block]
    return block[: block.index("options")]


def test_the_first_command_prints_what_the_readme_shows(tmp_path):
    """The command line as README has it, on the messages that ship; run twice, it asks for --force."""
    done = cdcavro_run("--out", "out", cwd=tmp_path)
    assert done.returncode == 0
    shown = [line for line in blocks("text")[0].splitlines() if line != "..."]
    assert [line for line in done.stdout.splitlines() if line in shown] == shown
    again = cdcavro_run("--out", "out", cwd=tmp_path)
    said = "Error: out/payloads: expected a new folder, or leave to replace it (--force), got one that exists"
    assert (again.returncode, again.stderr.strip()) == (2, said)


def test_rejects_are_an_exit_code_only_if_there_are_too_many(tmp_path):
    """0 by default, 1 beyond --max-rejects; the sentence says where they are."""
    (tmp_path / "in.jsonl").write_bytes(b'{"recordType":"DDL"}\nhello\n')
    done = cdcavro_run("in.jsonl", "--out", "a", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "read 2 = written 1 + rejected 1")
    assert done.stderr.splitlines()[-1] == "rejected messages are in a/rejects, with the reason of each"
    assert cdcavro_run("in.jsonl", "--out", "a", "--force", "--max-rejects", "10%", cwd=tmp_path).returncode == 1


def cdcavro_run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the main job as a user does."""
    command = [str(Path(sys.executable).with_name("cdcavro")), "run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def test_an_interrupt_ends_the_job_without_a_word_too_much(tmp_path):
    """All processes get it, as from a terminal: Spark's, and those of its workers."""
    (tmp_path / "in.jsonl").write_bytes((SAMPLES / "canal" / "shop.jsonl").read_bytes() * 500)
    command = [Path(sys.executable).parent / "cdcavro", "run", "in.jsonl", "--out", "out", "--master", "local[2]"]
    with running(command, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True, text=True) as process:
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("converting"):
                os.killpg(process.pid, signal.SIGINT)
    assert process.returncode == 130
    assert "converting 1 files\n" in said
    assert [line for line in said if "Traceback" in line or "ERROR" in line or "Exception" in line] == []
    assert not (tmp_path / "out").exists()
