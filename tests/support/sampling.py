"""What a run of the tests draws: the printed seed repeats it, and each set of parameters of a test function is drawn by itself.

`--sample slow=0.25,jvm=0.05` runs a quarter of the tests that are slow and a twentieth of those that start Java, and others
each time; tests with neither mark always run. `jvm=0-0.5` and `jvm=0.5-1` with one seed run each of them once, between
them. `--sets 3` runs at most three sets of parameters of each function, and
`pytest` alone, which names no test and no file, two: a developer has a minute. `--few PATH=6` draws six sets of each
function below a path, and two without a number; `--few slow=3`, three of each function whose tests are slow. Whatever is named runs whole, and so does all in tox where it does not
say otherwise, and what `--lf` chooses from. Tests that share what their file makes for each set of parameters draw the
same sets, so that it is made for few.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import secrets
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pytest

_SEED = "CDCAVRO_TESTS_SEED"
_SETS = "CDCAVRO_TESTS_SETS"
_SCALE = 1 << 32
# A test has the first of these that it is marked with.
_KINDS: Final = ("jvm", "slow")
# What `pytest` is asked for by pyproject.toml.
_QUICK: Final = "not slow and not jvm"
# Sets of parameters of one function, where no test is named.
_FEW: Final = 2
# Options that choose by what failed before, each of a plugin that may be off.
_FAILED: Final = ("lf", "failedfirst", "stepwise", "stepwise_skip", "stepwise_reset")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("sample")
    group.addoption(
        "--sample",
        type=_fractions,
        default={},
        metavar="KIND=FRACTION,...",
        help="run this part of the tests that are slow or start Java (jvm): more than 0, at most 1, or FROM-TO",
    )
    group.addoption("--sets", type=_number, metavar="N", help="run at most so many sets of parameters of each function")
    group.addoption(
        "--few",
        type=_few_below,
        action="append",
        default=[],
        metavar="PATH[=N]",
        help=f"run at most N sets of parameters of each function below this path, or of each slow or jvm one; by default {_FEW}",
    )
    group.addoption(
        "--seed", metavar="TEXT", help="what the sample is drawn by; a new one each time if it is not given"
    )


def _fractions(text: str) -> dict[str, tuple[float, float]]:
    """Return from where to where tests of a kind are drawn."""
    found = {}
    for part in text.split(","):
        kind, _, fraction = part.partition("=")
        least, dash, most = fraction.partition("-")
        found[kind] = (float(least), float(most)) if dash else (0.0, float(fraction))
    if not found.keys() <= set(_KINDS) or not all(0 <= least < most <= 1 for least, most in found.values()):
        raise ValueError(text)
    return found


def _number(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got {text!r}")
    return int(text)


def _few_below(text: str) -> tuple[str, int]:
    path, _, number = text.partition("=")
    return path, _number(number or str(_FEW))


def pytest_configure(config: pytest.Config) -> None:
    """Choose a seed and what is drawn; workers, which are processes of this one, take the same."""
    if not hasattr(config, "workerinput"):
        os.environ[_SEED] = config.option.seed or os.environ.get(_SEED) or secrets.token_hex(3)
        few = config.option.sets or (_FEW if _is_everybodys(config) else "")
        os.environ[_SETS] = str(few)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse a path of `--few` that leads nowhere, of which all tests would run."""
    config = session.config
    paths = [path for path, _ in config.option.few if path not in _KINDS]
    if missing := [path for path in paths if not (config.rootpath / path).exists()]:
        raise pytest.UsageError(f"--few: expected files and folders, got {', '.join(missing)}, which are not there")


def _is_everybodys(config: pytest.Config) -> bool:
    """Return whether this is `pytest` alone: no test, no file, no format, nothing that failed, and not in tox."""
    options = config.option
    is_named = options.keyword or options.format or options.markexpr != _QUICK
    is_named = is_named or any(getattr(options, name, False) for name in _FAILED)
    return config.args_source is config.ArgsSource.TESTPATHS and not is_named and "CDCAVRO_BUILD" not in os.environ


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what is drawn, and how the same is drawn again."""
    drawn = [f"{most - least:.0%} of the tests marked {kind}" for kind, (least, most) in config.option.sample.items()]
    if few := os.environ[_SETS]:
        drawn.append(f"at most {few} sets of parameters of each function")
    for path, count in config.option.few:
        those = f"marked {path}" if path in _KINDS else f"of {path}"
        drawn.append(f"at most {count} sets of parameters of each function {those}")
    return f"sample: {', '.join(drawn)}; the same again with --seed {os.environ[_SEED]}" if drawn else None


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Make no test of a set of parameters that is left out anyway: most of what collecting costs is making tests.

    Of sets that differ in their marks, so many of each kind are made: by the marks, others are left out later.
    """
    yield
    if (few := os.environ[_SETS]) and not _names_sets(metafunc.config):
        kinds: dict[frozenset[str], list[tuple[float, int]]] = defaultdict(list)
        for place, call in enumerate(metafunc._calls):
            test = f"{metafunc.definition.nodeid}[{call.id}]"
            number = drawing(os.environ[_SEED], _drawn_by(test, metafunc._arg2fixturedefs))
            kinds[frozenset(mark.name for mark in call.marks)].append((number, place))
        drawn = sorted(place for kind in kinds.values() for _, place in sorted(kind)[: int(few)])
        metafunc._calls[:] = [metafunc._calls[place] for place in drawn]


def _names_sets(config: pytest.Config) -> bool:
    """Return whether what is run is chosen by the names of tests, so that all must be there to choose from."""
    options = config.option
    return bool(options.keyword or options.format or any("::" in argument for argument in config.args))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not drawn."""
    seed, few = os.environ[_SEED], os.environ[_SETS]
    kept = [item for item in items if _is_drawn(config, item, drawing(seed, item.nodeid))]
    for path, count in config.option.few:
        own = [item for item in kept if _is_meant(config, item, path)]
        left_out = set(own) - set(_few_sets(own, seed, count))
        kept = [item for item in kept if item not in left_out]
    if few:
        kept = _few_sets(kept, seed, int(few))
    if config.option.within is not None:
        # So that it is not always the same ones for which there is no time.
        kept.sort(key=lambda item: drawing(seed, item.nodeid.partition("::")[0]))
    if len(kept) < len(items) or config.option.within is not None:
        chosen = set(kept)
        left = [item for item in items if item not in chosen]
        items[:] = kept
        config.hook.pytest_deselected(items=left)


def _is_meant(config: pytest.Config, item: pytest.Item, few: str) -> bool:
    """Return whether `--few` is for a test: by its kind, or by where it is."""
    if few in _KINDS:
        return _kind(item) == few
    return item.path.is_relative_to(config.rootpath / few)


def _kind(item: pytest.Item) -> str | None:
    return next(filter(item.get_closest_marker, _KINDS), None)


def _is_drawn(config: pytest.Config, item: pytest.Item, number: float) -> bool:
    least, most = config.option.sample.get(_kind(item), (0, 1))
    return least <= number < most


def _few_sets(items: list[pytest.Item], seed: str, count: int) -> list[pytest.Item]:
    """Return the tests of which each function has at most so many, in their order."""
    of: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        of[item.nodeid.partition("[")[0]].append(item)
    chosen = {
        item
        for sets in of.values()
        for item in (sets if len(sets) <= count else sorted(sets, key=lambda one: _rank(seed, one))[:count])
    }
    return [item for item in items if item in chosen]


def _rank(seed: str, item: pytest.Item) -> tuple[bool, float]:
    """Return what the tests of a function are drawn in the order of: one that is skipped, only if there are no others."""
    fixtures = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009  pytest tells of scopes in no other way
    return item.get_closest_marker("skip") is not None, drawing(seed, _drawn_by(item.nodeid, fixtures))


def _drawn_by(test: str, fixtures: Mapping[str, Sequence[Any]]) -> str:
    """Return what a set of parameters is drawn by: the test's id, or the file and the parameters of what a file makes once."""
    name, _, parameters = test.partition("[")
    is_shared = any(made[-1].scope == "module" and made[-1].params for made in fixtures.values())
    return f"{name.partition('::')[0]}[{parameters}" if is_shared else test


def drawing(seed: str, test: str) -> float:
    """Return a test's number from 0 to 1, below which a part of all lies; each seed gives others."""
    digest = hashlib.blake2b(f"{seed}\n{test}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") / _SCALE
