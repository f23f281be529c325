"""Runs pytest where there is neither Java nor pyspark: `python without_java.py [OPTION OF PYTEST ...]`.

Java lies in a folder of `PATH` among what tests need, such as `bash`: the folder is replaced by one of links to all else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

# All by which a program could find it.
_VARIABLES = ("JAVA_HOME", "JDK_HOME", "SPARK_HOME")


def without_java(folders: list[str], place: Path) -> list[str]:
    """Return folders of programs, those with Java as folders of links in a place."""
    found = []
    for number, folder in enumerate(folders):
        if Path(folder, "java").exists():
            links = place / str(number)
            links.mkdir()
            for program in Path(folder).iterdir():
                if program.name != "java":
                    (links / program.name).symlink_to(program)
            found.append(str(links))
        else:
            found.append(folder)
    return found


def main() -> int:
    """Run it, and return an exit code."""
    with tempfile.TemporaryDirectory() as place:
        folders = without_java(os.environ["PATH"].split(os.pathsep), Path(place))
        environment = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
        environment["PATH"] = os.pathsep.join(folders)
        there = [name for name in ("pyspark", "py4j") if find_spec(name)]
        there += filter(None, [shutil.which("java", path=environment["PATH"])])
        if there:
            sys.exit(f"there must be neither Java nor pyspark, and there is {', '.join(there)}")
        command = [sys.executable, "-P", "-m", "pytest", *sys.argv[1:]]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
