"""A sample of the tests that take long: `--sample 0.2` runs a fifth of them, and another fifth each time.

Tests with neither mark always run. The seed is printed, and `--seed` with it runs the same tests again. Each set of
parameters of a test function is drawn by itself.
"""

from __future__ import annotations

import hashlib
import os
import secrets

import pytest

_SEED = "CDCAVRO_TESTS_SEED"
_SCALE = 1 << 32


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("sample")
    group.addoption(
        "--sample",
        type=_fraction,
        default=1.0,
        metavar="FRACTION",
        help="run this part of the tests that are slow or start Java: more than 0, at most 1",
    )
    group.addoption(
        "--seed", metavar="TEXT", help="what the sample is drawn by; a new one each time if it is not given"
    )


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise ValueError(text)
    return value


def pytest_configure(config: pytest.Config) -> None:
    """Choose a seed; workers, which are processes of this one, take the same."""
    if not hasattr(config, "workerinput"):
        os.environ[_SEED] = config.option.seed or os.environ.get(_SEED) or secrets.token_hex(3)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what is drawn, and how the same is drawn again."""
    fraction, seed = config.option.sample, os.environ[_SEED]
    if fraction == 1:
        return None
    return f"sample: {fraction:.0%} of the tests that are slow or start Java; the same again with --seed {seed}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not drawn."""
    seed, chosen, left = os.environ[_SEED], [], []
    for item in items:
        is_long = item.get_closest_marker("slow") or item.get_closest_marker("jvm")
        (left if is_long and not is_drawn(seed, item.nodeid, config.option.sample) else chosen).append(item)
    if left:
        items[:] = chosen
        config.hook.pytest_deselected(items=left)


def is_drawn(seed: str, test: str, fraction: float) -> bool:
    """Return whether a test is among a fraction (0 to 1) of all; each seed draws others."""
    digest = hashlib.blake2b(f"{seed}\n{test}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") < fraction * _SCALE
