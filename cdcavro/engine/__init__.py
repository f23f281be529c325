"""The engine: programs of schemas, run by compiled code over the bytes of messages and payloads.

With `CDCAVRO_ENGINE=off` in the environment, what is compiled is passed by and its sources in Python run, as where
nothing could be compiled: results are the same, and slower.
"""

import os as _os
import sys as _sys
from importlib.machinery import FileFinder as _FileFinder
from importlib.machinery import ModuleSpec as _ModuleSpec
from importlib.machinery import SourceFileLoader as _SourceFileLoader


class _Sources:
    """Finds the modules of this package as Python, also where there is a compiled one."""

    @staticmethod
    def find_spec(name: str, path: list[str] | None, target: object = None) -> _ModuleSpec | None:  # noqa: ARG004
        """Return what a module is loaded from; None where it is not of this package."""
        if not name.startswith("cdcavro.") or not path:
            return None
        spec = _FileFinder(path[0], (_SourceFileLoader, [".py"])).find_spec(name)
        # A folder of data is left to others.
        return spec if spec and spec.loader else None


_wanted = _os.environ.get("CDCAVRO_ENGINE", "")
if _wanted not in {"", "off"}:
    raise ImportError(f"CDCAVRO_ENGINE: expected 'off' or nothing, got {_wanted!r}")
if _wanted:
    _sys.meta_path.insert(0, _Sources)  # type: ignore[arg-type]
