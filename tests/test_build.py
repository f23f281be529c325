"""What `setup.py` does where nothing compiles, and what is to be compiled."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib

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

    def run(wanted, *command):
        environment = os.environ | {"CC": "false", "CDCAVRO_BUILD": wanted}
        command = [sys.executable, "setup.py", *(command or ("build_ext", "--inplace"))]
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
    assert "false'" in done.stderr  # however the compiler's failure is told


def test_a_pure_build_asks_no_compiler(build):
    """Nor does it warn of one."""
    done = build("pure")
    assert (done.returncode, "pure Python" in done.stdout + done.stderr) == (0, False)


def test_a_build_that_nobody_knows_is_refused(build):
    """A word that is misspelled builds nothing."""
    done = build("complied")
    assert done.returncode == 1
    assert done.stderr.strip() == "CDCAVRO_BUILD: expected 'compiled' or 'pure', got 'complied'"


def test_every_source_is_translated_by_this_cython(tmp_path):
    """So by the lowest version that is promised, where the tests run with the lowest."""
    compiler = pytest.importorskip("Cython.Compiler.Main")
    for source in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cdcavro"]["compiled"]:
        made = tmp_path / source.replace("/", "_")
        options = compiler.CompilationOptions(language_level=3, output_file=str(made.with_suffix(".c")))
        result = compiler.compile_single(str(ROOT / source), options, full_module_name=None)
        assert (source, result.num_errors) == (source, 0)
        assert made.with_suffix(".c").stat().st_size > 100_000


def test_a_wheel_has_no_module_whose_source_is_gone(build, tmp_path):
    """An earlier build leaves a folder, which the next one would pack again."""
    for folder in ("cdcavro", "cdcavro/samples", "avsc"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "__init__.py").touch()
    for source in ("gone", "small"):
        (tmp_path / "cdcavro" / f"{source}.py").touch()
        done = build("pure", "build")
        assert done.returncode == 0, done.stderr
        (tmp_path / "cdcavro" / "gone.py").unlink(missing_ok=True)
    assert [path.name for path in tmp_path.glob("build/lib*/cdcavro/*.py") if path.stem != "__init__"] == ["small.py"]


def test_a_source_distribution_has_all_that_builds_tests_and_documents_the_project(tmp_path):
    """Whoever packages the project has no clone of it."""
    pytest.importorskip("setuptools")
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path), "sdist", "-d", str(tmp_path)]
    subprocess.run(
        command, cwd=ROOT, env=os.environ | {"CDCAVRO_BUILD": "pure"}, check=True, capture_output=True, timeout=50
    )
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        found = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    folders = [ROOT / name for name in (".ci", ".github", "avsc", "cdcavro", "deploy", "docs", "tests")]
    files = [
        path
        for pattern in ("*.in", "*.ini", "*.md", "*.py", "*.toml", "*.txt", "*.yaml")
        for path in ROOT.glob(pattern)
    ]
    wanted = [path for path in (*files, *(path for folder in folders for path in folder.rglob("*"))) if path.is_file()]
    made = {".c", ".pyc", ".pyd", ".so"}
    assert {path.relative_to(ROOT).as_posix() for path in wanted if path.suffix not in made} - found == set()
