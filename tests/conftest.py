"""What all tests share: the folder of external samples, and the number of examples that hypothesis generates."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support.places import SHARED
from support.processes import let_programs_heed_signals

# So that assertions in shared tests fail with as much detail as others.
pytest.register_assert_rewrite("support.pipelines", "support.registry_suite", "support.registry_writers")

_EXAMPLES = os.environ.get("CDCAVRO_EXAMPLES", "")

# The examples are the same each time, and there are more in tox than in plain pytest; a number that is asked for gives new ones.
_USUAL = 10 if "CDCAVRO_BUILD" in os.environ else 5
settings.register_profile(
    "cdcavro",
    max_examples=int(_EXAMPLES or _USUAL),
    derandomize=not _EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("cdcavro")

let_programs_heed_signals()

pytest_plugins = ["support.limits", "support.sampling"]


def pytest_collection_finish() -> None:
    """Exclude the thousands of collected tests from garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared_samples() -> Path:
    """Return the folder of external samples, which are never copied; without it, tests that need it are skipped."""
    folder = SHARED / "samples"
    if not folder.is_dir():
        pytest.skip("the samples in ../shared are not here")
    return folder
