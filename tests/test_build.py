"""What `setup.py` does where nothing compiles."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.places import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the compiler is named otherwise"),
]


@pytest.fixture
def build(tmp_path):
    """Build a package of one module by our `setup.py`, with a compiler that fails."""
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")
    (tmp_path / "cdcavro").mkdir()
    (tmp_path / "setup.py").write_bytes((ROOT / "setup.py").read_bytes())
    (tmp_path / "cdcavro" / "small.py").write_text("def same(value):\n    return value\n")
    (tmp_path / "pyproject.toml").write_text('[tool.cdcavro]\ncompiled = ["cdcavro/small.py"]\n')

    def run(wanted):
        environment = os.environ | {"CC": "false", "CDCAVRO_BUILD": wanted}
        command = [sys.executable, "setup.py", "build_ext", "--inplace"]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=50, check=False
        )

    return run


def test_a_build_that_does_not_compile_is_pure(build):
    """It says so, and works."""
    done = build("")
    assert done.returncode == 0
    assert "not compiled, so cdcavro will run as pure Python: " in done.stdout + done.stderr


def test_a_compiled_build_that_is_asked_for_and_does_not_compile_fails(build):
    """No wheel is pure by accident."""
    done = build("compiled")
    assert done.returncode == 1
    assert "will run as pure Python" not in done.stdout + done.stderr
    assert "false' failed" in done.stderr


def test_a_pure_build_asks_no_compiler(build):
    """Nor does it warn of one."""
    done = build("pure")
    assert (done.returncode, "pure Python" in done.stdout + done.stderr) == (0, False)


def test_a_build_that_nobody_knows_is_refused(build):
    """A word that is misspelled builds nothing."""
    done = build("complied")
    assert done.returncode == 1
    assert done.stderr.strip() == "CDCAVRO_BUILD: expected 'compiled' or 'pure', got 'complied'"
