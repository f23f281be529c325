"""README is the manual: what it shows runs, and says what comes out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from cdcavro.cli import main
from support.messages import shop_canal
from support.readme import README, blocks, is_spark

ROOT = README.parent


def test_the_examples_without_spark_run_and_print_what_they_say(capsys, monkeypatch, tmp_path):
    """All of them, one behind another, in one namespace and an empty folder."""
    monkeypatch.chdir(tmp_path)
    code = [block for block in blocks("python") if not is_spark(block)]
    names: dict = {}
    for block in code:
        exec(compile(block, "README.md", "exec"), names)
    said = re.findall(r"^ *print\(.*?\) +# (.*)$", "".join(code), re.MULTILINE)
    assert len(said) == 19
    assert capsys.readouterr().out.splitlines() == said


@pytest.mark.parametrize("line", re.findall(r"^cdcavro\.(.*?) +# (.*)$", blocks("python")[0], re.MULTILINE))
def test_what_the_first_example_says_of_its_values_is_so(line):
    """`sniff` gives what stands beside it."""
    import cdcavro  # noqa: PLC0415

    call, said = line
    if not said.startswith("'"):
        return
    names = {"cdcavro": cdcavro}
    exec(blocks("python")[0], names)
    assert repr(eval(f"cdcavro.{call}", names)) == said


def test_the_commands_without_spark_run(monkeypatch, tmp_path):
    """The console block, in an empty folder that holds changes.jsonl."""
    monkeypatch.chdir(tmp_path)
    lines = [
        line for line in shop_canal() if b"CREATE TABLE orders" in line or (b'"INSERT"' in line and b'"orders"' in line)
    ][:2]
    Path("changes.jsonl").write_bytes(b"\n".join(lines))
    shown: dict[str, str] = {}
    for line in "".join(blocks("console")).splitlines():
        if line.startswith("$ "):
            command = line[2:]
            shown[command] = ""
        else:
            shown[command] += line + "\n"
    assert len(shown) >= 6
    for command, said in shown.items():
        done = CliRunner().invoke(main, shlex.split(command)[1:], prog_name="cdcavro")
        assert done.exit_code == 0, f"{command}: {done.output}"
        assert said in done.stdout
    assert Path("again.jsonl").read_bytes().count(b"\n") == 2


def test_ci_calls_the_test_command_of_the_readme_and_nothing_else():
    """`.ci/run` is the second command, from the repository's own folder."""
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line and not line.startswith("#")]
    assert commands == ["set -eu", 'cd "$(dirname "$0")/.."', blocks("sh")[1].strip()]
