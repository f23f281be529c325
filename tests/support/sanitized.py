"""Runs tests on an engine that is built with sanitizers, which end the process at the first access out of bounds.

    python tests/support/sanitized.py FOLDER [ARGUMENTS OF PYTEST]

copies the package into a folder, builds its engine there with the address and undefined-behaviour sanitizers of GCC,
and runs the tests of the engine on it. Python itself is the usual one, so the sanitizers are loaded before it, and its
memory comes from `malloc`, which they watch.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Distribution, Extension

ROOT = Path(__file__).parents[2]
LIBRARIES = ("libasan.so", "libubsan.so")
FLAGS = ["-O1", "-g1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
TESTED = ["tests/engine", "tests/avro", "tests/lake/test_placing.py", "tests/arrow/test_record_batches.py"]
TESTED += ["tests/spark/source/test_facts.py", "tests/formats/test_connect_avro.py"]
TESTED += [f"tests/formats/test_{name}.py" for name in ("dts_avro", "canal_protobuf", "goldengate_tx")]
TESTS = [*TESTED, "-p", "no:cacheprovider", "-p", "no:faulthandler", "--capture=sys", "-o", "timeout=300"]


def libraries() -> list[str]:
    """Return the libraries of the sanitizers; none where the compiler is another or lacks them."""
    if sys.platform != "linux" or shutil.which("gcc") is None:
        return []
    asked = [["gcc", f"-print-file-name={name}"] for name in LIBRARIES]
    found = [subprocess.run(one, capture_output=True, text=True, check=True).stdout.strip() for one in asked]
    return found if all(Path(path).is_absolute() for path in found) else []


def build(folder: Path) -> None:
    """Make a copy of the package, and of its schemas, whose engine has the sanitizers in it."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("cdcavro", "avsc"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    os.chdir(folder)
    engine = Extension(
        "cdcavro.engine.machine",
        ["cdcavro/engine/machine.pyx"],
        extra_compile_args=FLAGS,
        extra_link_args=["-fsanitize=address,undefined"],
    )
    directives = {"language_level": 3, "annotation_typing": False}
    made = cythonize([engine], build_dir="build", compiler_directives=directives, quiet=True, emit_linenums=True)
    command = Distribution({"ext_modules": made}).get_command_obj("build_ext")
    command.inplace = True
    command.ensure_finalized()
    os.environ["CC"] = "gcc"
    command.run()


def main() -> int:
    """Build, and run the tests."""
    found, folder = libraries(), Path(sys.argv[1]).absolute()
    if not found:
        print("skipped: there is no GCC for Linux here with its sanitizers")
        return 0
    build(folder)
    environment = os.environ | {
        "LD_PRELOAD": " ".join(found),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(folder),
        # What Python itself never gives back is no leak of ours, and a mistake ends the tests at once.
        "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:quarantine_size_mb=8",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "CDCAVRO_BUILD": "",
    }
    # -P: the folder of the sources stays out of the path, and the package in the copy is what tests import.
    python = [sys.executable, "-P"]
    imported = "from cdcavro.engine import machine; print(machine.__file__)"
    shown = subprocess.run(
        [*python, "-c", imported], env=environment, capture_output=True, text=True, check=True
    ).stdout
    if not shown.startswith(f"{folder / 'cdcavro' / 'engine' / 'machine'}.cpython"):
        print(f"not the engine that was built: {shown}")
        return 1
    return subprocess.run(
        [*python, "-m", "pytest", *TESTS, *sys.argv[2:]], cwd=ROOT, env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
