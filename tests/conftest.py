"""What all tests share: the option `--format`, the folder of external samples, and the number of examples of hypothesis."""

from __future__ import annotations

import gc
import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from cdcavro.wire.formats import REGISTRY
from support.places import SHARED
from support.processes import let_programs_heed_signals, let_spark_compile_little

# So that assertions in shared tests fail with as much detail as others.
pytest.register_assert_rewrite("support.jobs", "support.registry_suite", "support.registry_writers")

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

if "CDCAVRO_BUILD" not in os.environ:
    # To wait for the disk takes plain pytest seconds, and what it tests is the same if the power does not fail; tox waits.
    os.fsync = os.fstat

let_spark_compile_little()
let_programs_heed_signals()
# All that is collected stays: there is nothing to look for meanwhile.
gc.disable()


pytest_plugins = ["support.limits", "support.sampling"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that selects the tests of one format."""
    parser.addoption(
        "--format", metavar="NAME", help="run only the tests of a format: by their file or their parameters"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a format that is not known."""
    name = config.getoption("--format")
    if name is not None and name not in REGISTRY:
        raise pytest.UsageError(f"--format: expected one of {', '.join(REGISTRY)}, got {name!r}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other formats."""
    name = config.getoption("--format")
    if name is not None:
        config.hook.pytest_deselected(items=[item for item in items if not _is_of(item, name)])
        items[:] = [item for item in items if _is_of(item, name)]


def _is_of(item: pytest.Item, name: str) -> bool:
    """Return whether a test is in the file of a format, or has the format's name in the id of its parameters."""
    return item.path.stem == f"test_{name}" or name in re.findall(r"\w+", item.name.partition("[")[2])


def pytest_collection_finish() -> None:
    """Exclude the thousands of collected tests from garbage collection, which begins here.

    It begins less often than Python's own 700 objects would have it: that takes one twentieth of the time of all tests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


@pytest.fixture(scope="session")
def shared_samples() -> Path:
    """Return the folder of external samples, which are never copied; without it, tests that need it are skipped."""
    folder = SHARED / "samples"
    if not folder.is_dir():
        pytest.skip("the samples in ../shared are not here")
    return folder
