"""What all tests share: where the samples of others lie, and how many examples hypothesis makes."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support.places import SHARED
from support.processes import let_programs_heed_signals

# The tests that several files share fail with as many words as others.
pytest.register_assert_rewrite("support.registry_suite", "support.registry_writers")

_EXAMPLES = os.environ.get("CDCAVRO_EXAMPLES", "")

# The same examples each time, more of them in tox than for plain pytest, unless somebody asks for more: those are new ones.
_USUAL = 15 if "CDCAVRO_BUILD" in os.environ else 5
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


def pytest_collection_finish() -> None:
    """Let no collection of garbage go through thousands of collected tests again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared_samples() -> Path:
    """The samples that are read where they lie and never copied; a test that needs them is skipped without."""
    folder = SHARED / "samples"
    if not folder.is_dir():
        pytest.skip("the samples in ../shared are not here")
    return folder
