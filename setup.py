"""The parts of the build that are code: what is compiled, and what happens where nothing can be.

`pyproject.toml` lists the compiled modules. The environment variable CDCAVRO_BUILD selects the build. If it is not
set, modules that cannot be compiled run as pure Python; with `compiled`, the build then fails; with `pure`, nothing is
compiled.

There is a wheel for each Python, not one for all. By the limited API (`Py_LIMITED_API`, with functions in place of six
macros) `encode`, `decode` and typed payloads take as long, within what is noise (0 to 4 % in the median). But whatever
makes objects takes longer: `to_changes` a tenth of Canal's messages of OMS and a third of Alibaba's, and payloads of
changes 5 to 25 % in both directions.
"""

import os
import shutil
import sys
import tomllib
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

FOLDER = Path(__file__).parent
WANTED = os.environ.get("CDCAVRO_BUILD", "")
if WANTED not in {"", "compiled", "pure"}:
    raise SystemExit(f"CDCAVRO_BUILD: expected 'compiled' or 'pure', got {WANTED!r}")


def extensions() -> list[Extension]:
    """Return the modules to compile."""
    if WANTED == "pure":
        return []
    from Cython.Build import cythonize  # noqa: PLC0415  not needed for a pure build

    os.chdir(FOLDER)
    modules = []
    for source in tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["cdcavro"]["compiled"]:
        # What Cython makes of Python is calls into the interpreter, which no optimisation makes faster.
        flags = [] if sys.platform == "win32" else ["-O3" if source.endswith(".pyx") else "-O1", "-g0"]
        modules.append(Extension(source.rpartition(".")[0].replace("/", "."), [source], extra_compile_args=flags))
    directives = {"language_level": 3, "annotation_typing": False, "embedsignature": False}
    # On other systems, new processes would run this file again.
    processes = (os.cpu_count() or 1) if sys.platform == "linux" else 0
    return cythonize(modules, build_dir="build/c", compiler_directives=directives, nthreads=processes)


class AllOrNone(build_ext):
    """Builds all compiled modules or none, so that an installation is one of the two that are tested."""

    def build_extensions(self) -> None:
        """Compile the modules; if that fails, leave them as pure Python, unless a compiled build is asked for."""
        try:
            super().build_extensions()
        except Exception as error:
            if WANTED == "compiled":
                raise
            self.warn(f"not compiled, so cdcavro will run as pure Python: {error}")
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []


class FromNothing(build_py):
    """Builds into an empty folder: what an earlier build left there would be in the wheel, also where its source is gone."""

    def run(self) -> None:
        """Remove what is there, and build."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(
    packages=[*find_packages(include=["cdcavro", "cdcavro.*"]), "cdcavro.avsc", "cdcavro.samples"],
    package_dir={"cdcavro.avsc": "avsc"},
    ext_modules=extensions(),
    cmdclass={"build_ext": AllOrNone, "build_py": FromNothing},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
