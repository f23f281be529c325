"""The examples that need Spark run, and show what they say; and so does the first command of README."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.messages import SAMPLES
from support.pages import DOCS, all_pages, blocks, matches, name_of, needs_spark, run_page
from support.places import README
from support.processes import running

# It starts a broker, and `tests/spark/pipeline/test_tutorial.py` runs it.
TUTORIAL = DOCS / "tutorial-pipeline.md"


@pytest.mark.timeout(600)  # one of them starts a cluster of its own
@pytest.mark.parametrize("page", [page for page in all_pages() if needs_spark(page) and page != TUTORIAL], ids=name_of)
def test_the_examples_of_a_page_run_and_say_what_is_shown(spark, page, tmp_path):
    """All of them, one behind another, on the session of the tests; nothing is left where Spark was started."""
    # Spark itself makes an empty warehouse there; a test that runs beside this one, the folder of a source distribution.
    before = {*Path.cwd().glob("[!.]*"), Path("spark-warehouse").absolute()}
    assert run_page(page, tmp_path) > 0
    assert {path for path in Path.cwd().glob("[!.]*") if not path.match("cdcavro-*")} <= before


@pytest.mark.jvm
def test_the_first_command_prints_what_the_readme_shows(tmp_path):
    """The command line as README has it, on the messages that ship; run twice, it asks for --force."""
    done = cdcavro_run("--out", "out", cwd=tmp_path)
    assert done.returncode == 0
    (shown,) = [block.text for block in blocks(README) if block.text.startswith("format ")]
    assert matches(shown, done.stdout)
    again = cdcavro_run("--out", "out", cwd=tmp_path)
    said = "Error: out/payloads: expected a new folder (--force replaces one), got one that exists"
    assert (again.returncode, again.stderr.strip()) == (2, said)


@pytest.mark.jvm
def test_rejects_are_an_exit_code_only_if_there_are_too_many(tmp_path):
    """1 beyond --max-rejects, 0 by default, as the page on several formats shows; the sentence says where they are."""
    (tmp_path / "in.jsonl").write_bytes(b'{"recordType":"DDL"}\nhello\n')
    (tmp_path / "a" / "payloads" / "older").mkdir(parents=True)
    done = cdcavro_run("in.jsonl", "--out", "a", "--force", "--max-rejects", "10%", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "read 2 = written 1 + rejected 1")
    assert done.stderr.splitlines()[-1] == "rejected messages are in a/rejects, with the reason of each"
    assert not (tmp_path / "a" / "payloads" / "older").exists()


def cdcavro_run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the main job as a user does."""
    command = [str(Path(sys.executable).with_name("cdcavro")), "run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


@pytest.mark.jvm
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
    assert "converting 1 file\n" in said
    assert [line for line in said if "Traceback" in line or "ERROR" in line or "Exception" in line] == []
    assert not (tmp_path / "out").exists()
