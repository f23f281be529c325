"""Whatever messages, payloads, statements and schemas say, it is data: nothing runs, is imported or is loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cdcavro

_HERE = Path(__file__).parent


def _run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(Path(cdcavro.__file__).parents[1]), str(_HERE)])
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder, env={"PYTHONPATH": paths}
    )


@pytest.mark.slow
def test_an_audit_hook_sees_nothing_run(tmp_path):
    """No import, no exec or compile, no pickle, process, socket or file, for hostile texts in every string and name."""
    done = _run("from support.audited import main; main()", tmp_path)
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["events"] == []
    assert told["messages"] > 400
    assert told["done"] > 1_000
    assert "the pickle was loaded" not in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_audit_hook_would_see_it(tmp_path):
    """Each of them, were it there."""
    code = """
import pickle, sys
from support import audited
seen = []
sys.addaudithook(lambda event, _: seen.append(event) if event.startswith(audited.EVENTS) else None)
pickle.loads(audited.PICKLED)
eval("1 + 1")
import wave
open("ran", "w").close()
print({event.split(".")[0] for event in seen} >= {"pickle", "exec", "compile", "import", "open"})
"""
    assert _run(code, tmp_path).stdout.splitlines() == ["the pickle was loaded", "True"]
