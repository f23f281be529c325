"""What the build finds rather than lists: the packages, and the compiled modules, which have a `.pxd` beside them.

CDCAVRO_BUILD in the environment says which build is wanted. Without it, the same sources run as they are where they do
not compile; `compiled` lets the build fail there; `pure` leaves the compiler out.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

FOLDER = Path(__file__).parent
WANTED = os.environ.get("CDCAVRO_BUILD", "")
if WANTED not in {"", "compiled", "pure"}:
    raise SystemExit(f"CDCAVRO_BUILD: expected 'compiled' or 'pure', got {WANTED!r}")


def extensions() -> list[Extension]:
    """Give the compiled modules: from the .pyx where there is one, else from the .py itself."""
    if WANTED == "pure":
        return []
    from Cython.Build import cythonize  # noqa: PLC0415  not needed for a pure build

    os.chdir(FOLDER)
    found = []
    for declared in sorted(Path("cdcavro").rglob("*.pxd")):
        source = next(path for path in (declared.with_suffix(".pyx"), declared.with_suffix(".py")) if path.exists())
        flags = [] if sys.platform == "win32" else ["-O3", "-g0"]
        found.append(Extension(".".join(declared.with_suffix("").parts), [str(source)], extra_compile_args=flags))
    directives = {"language_level": 3, "annotation_typing": False, "embedsignature": False}
    # Elsewhere new processes would run this file again.
    processes = (os.cpu_count() or 1) if sys.platform == "linux" else 0
    return cythonize(found, build_dir="build/c", compiler_directives=directives, nthreads=processes)


class AllOrNone(build_ext):
    """Build all compiled modules, or none: they are made for each other."""

    def build_extensions(self) -> None:
        """Compile, or leave the sources to run as they are, unless a compiled build is asked for."""
        try:
            super().build_extensions()
        except Exception as error:
            if WANTED == "compiled":
                raise
            self.warn(f"not compiled, so cdcavro will run as pure Python: {error}")
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []


setup(
    packages=[*find_packages(include=["cdcavro", "cdcavro.*"]), "cdcavro.avsc", "cdcavro.samples"],
    package_dir={"cdcavro.avsc": "avsc"},
    ext_modules=extensions(),
    cmdclass={"build_ext": AllOrNone},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
