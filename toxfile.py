"""Lets tox find the Pythons that pyenv has installed, also those that no shell sees.

uv, which makes tox's environments, looks for a Python on PATH. There pyenv puts the versions that somebody has made
active, and no others.
"""

from __future__ import annotations

import os
from pathlib import Path

_ROOT = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
# Behind what is there: a Python that a shell sees counts first.
os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", ""), *map(str, sorted(_ROOT.glob("versions/3.*/bin")))])
