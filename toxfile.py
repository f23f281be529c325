"""Lets tox find the Pythons that pyenv has installed, also those that no shell sees.

tox looks for a Python on PATH. There pyenv puts the versions that somebody has made active, and no others.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tox.plugin import impl

if TYPE_CHECKING:
    from tox.config.sets import ConfigSet
    from tox.session.state import State


@impl
def tox_add_core_config(core_conf: ConfigSet, state: State) -> None:  # noqa: ARG001  as tox calls it
    """Try those of pyenv first, newest first, for each environment that asks for a Python of their version."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    state.conf.options.discover += map(str, sorted(root.glob("versions/3.*/bin/python"), reverse=True))
