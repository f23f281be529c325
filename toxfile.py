"""Lets tox find the Pythons that pyenv has installed, also those that no shell sees.

uv, which makes tox's environments, looks for a Python on PATH. There pyenv puts the versions that somebody has made
active, and no others. `exact` runs on the newest, which its `base_python` takes from the environment. All environments
of one run draw their samples by one seed, so that each test of several versions of Spark runs on one of them.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

_ROOT = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
# Behind what is there: a Python that a shell sees counts first.
os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", ""), *map(str, sorted(_ROOT.glob("versions/3.*/bin")))])
# pyenv's shims are there for each version, also where they lead nowhere.
_FOLDERS = [folder for folder in os.environ["PATH"].split(os.pathsep) if not folder.endswith("shims")]
for _name in ("python3.12", "python3.13"):
    if any(Path(folder, _name).is_file() for folder in _FOLDERS):
        os.environ["CDCAVRO_NEWEST_PYTHON"] = _name
os.environ.setdefault("CDCAVRO_TESTS_SEED", secrets.token_hex(3))
