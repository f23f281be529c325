"""How the tests run: a sample of the long ones, a limit for each, and a full disk told as what it is."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from support.places import ROOT, TESTS
from support.sampling import drawing

pytestmark = pytest.mark.slow
pytest_plugins = ["pytester"]

_INI = """
[pytest]
addopts = -p support.limits -p support.sampling -m "not slow and not jvm"
markers =
    slow: takes long
    jvm: starts Java
testpaths = tests
timeout = 60
"""
# Where Java is, before a test says something else.
JAVA = os.environ.get("JAVA_HOME")
# The option that the project's own `conftest.py` adds.
_FORMAT = "def pytest_addoption(parser): parser.addoption('--format')"


@pytest.fixture
def run(pytester, monkeypatch):
    """Run tests of a file of their own with our plugins, in a process of its own."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    monkeypatch.delenv("CDCAVRO_BUILD", raising=False)
    monkeypatch.delenv("CDCAVRO_TESTS_SEED", raising=False)
    monkeypatch.setenv("JAVA_HOME", "/java")
    pytester.makefile(".ini", pytest=_INI)

    def made(code, *options, alone=False):
        pytester.makeconftest(_FORMAT)
        pytester.makepyfile(**{"tests/test_them": code})
        return pytester.runpytest_subprocess(*([] if alone else ["-m", ""]), *options)

    return made


MANY = """
import pytest

@pytest.mark.slow
@pytest.mark.parametrize("number", range(200))
def test_slow(number): pass

def test_quick(): pass
"""


def test_a_sample_has_another_part_of_the_long_tests_for_each_seed_and_all_others(run):
    """The seed is printed, and draws the same again."""
    first = run(MANY, "--sample", "slow=0.2", "-v")
    seed = re.search(r"the same again with --seed (\w+)", first.stdout.str())[1]
    again, other = (
        run(MANY, "--sample", "slow=0.2", "-v", "--seed", seed),
        run(MANY, "--sample", "slow=0.2", "-v", "--seed", "x"),
    )
    ran = [set(re.findall(r"::(\S+) PASSED", result.stdout.str())) for result in (first, again, other)]
    assert all("test_quick" in tests and 15 < len(tests) < 75 for tests in ran)
    assert ran[0] == ran[1] != ran[2]


def test_parts_that_are_drawn_by_one_seed_have_each_test_once(run):
    """As the versions of Spark that are not the newest have them."""
    parts = [run(MANY, "--sample", f"slow={part}", "-v", "--seed", "x") for part in ("0-0.3", "0.3-0.6", "0.6-1")]
    ran = [name for part in parts for name in re.findall(r"::test_slow(\S+) PASSED", part.stdout.str())]
    assert sorted(ran) == sorted(f"[{number}]" for number in range(200))
    parts[0].stdout.fnmatch_lines("sample: 30% of the tests marked slow; the same again with --seed x")


LATE = """
import pytest, time

@pytest.mark.jvm
@pytest.mark.parametrize("number", range(4))
def test_java(number): time.sleep(0.3)

def test_other(): pass
"""


def test_tests_with_java_are_begun_as_long_as_there_is_time(run):
    """The others are skipped, which is said; tests without Java are begun at any time."""
    result = run(LATE, "--within", "0.4", "-rs")
    assert result.parseoutcomes() == {"passed": 3, "skipped": 2}
    result.stdout.fnmatch_lines("SKIPPED*: it was not begun within 0.4 seconds")
    assert run(LATE, "--within", "60").parseoutcomes() == {"passed": 5}


def test_which_files_there_is_time_for_is_drawn(run, pytester):
    """Each seed has another order of the files."""
    pytester.makepyfile(**{f"tests/test_{name}": "def test_it(): pass" for name in "abcdef"})
    orders = {
        tuple(re.findall(r"test_([a-f])\.py::", run("", "--within", "60", "-v", "--seed", seed).stdout.str()))
        for seed in ("x", "y", "z")
    }
    assert len(orders) == 3
    assert {frozenset(order) for order in orders} == {frozenset("abcdef")}


def test_workers_draw_the_same_sample(run):
    """A worker that drew another one could not take the controller's tests."""
    result = run(MANY, "--sample", "slow=0.2", "-n", "2")
    assert result.ret == 0
    assert 15 < result.parseoutcomes()["passed"] < 75


FEW = """
import pytest

@pytest.mark.parametrize("number", range(9))
def test_many(number): pass

@pytest.mark.parametrize("number", range(2))
def test_two(number): pass
"""


def test_pytest_alone_draws_few_sets_of_parameters_and_what_is_named_runs_whole(run, monkeypatch):
    """By a path, a word, or an expression of marks; in tox, nothing need be named."""
    first = run(FEW, "-v", alone=True)
    seed = re.search(
        r"at most 2 sets of parameters of each function; the same again with --seed (\w+)", first.stdout.str()
    )[1]
    again = run(FEW, "-v", "-n", "2", "--seed", seed, alone=True)
    # A seed that nobody chose may draw what another one does.
    others = [run(FEW, "-v", "--seed", other, alone=True) for other in ("x", "z")]
    ran = [set(re.findall(r"::(test_\w+\[\d\])", result.stdout.str())) for result in (first, again, *others)]
    assert ran[0] == ran[1]
    assert ran[2] != ran[3]
    assert [sum("two" in name for name in names) for names in ran] == [2] * 4
    assert [len(names) for names in ran] == [4] * 4
    for named in (["tests"], ["-k", "test"], ["-m", "not jvm"]):
        assert run(FEW, *named, alone=True).parseoutcomes() == {"passed": 11}
    monkeypatch.setenv("CDCAVRO_BUILD", "compiled")
    assert run(FEW, alone=True).parseoutcomes() == {"passed": 11}
    assert run(FEW, "tests", "--sets", "1").parseoutcomes() == {"passed": 2}
    for number in (0, 8):
        assert run(FEW, f"tests/test_them.py::test_many[{number}]", "--sets", "1").parseoutcomes() == {"passed": 1}


def test_pytest_that_is_asked_for_what_failed_runs_it_again(run):
    """Whatever would be drawn, so that it does not pass without it; the plugins of these options may be off."""
    code = """
    import pytest

    @pytest.mark.parametrize("number", range(30))
    def test_it(number): assert number != 7
    """
    assert run(code, "tests").parseoutcomes() == {"passed": 29, "failed": 1}
    for again, passed in (("--lf", 0), ("--ff", 29), ("--sw", 7)):
        outcomes = run(code, again, "--seed", "a", alone=True).parseoutcomes()
        assert (outcomes["failed"], outcomes.get("passed", 0)) == (1, passed), again
    assert run(FEW, "-p", "no:cacheprovider", "-p", "no:stepwise", alone=True).parseoutcomes() == {"passed": 4}


def test_a_set_that_is_skipped_is_drawn_last(run, pytester):
    """So a function runs also where one of its sets cannot, such as on an older Spark."""
    code = """
    import pytest

    @pytest.mark.parametrize("number", [pytest.param(0, marks=pytest.mark.slow), 1])
    def test_it(number): assert number == 1
    """
    skipping = """
    import pytest

    def pytest_collection_modifyitems(items):
        for item in items:
            if item.get_closest_marker("slow"): item.add_marker(pytest.mark.skip)
    """
    pytester.makepyfile(**{"tests/conftest": skipping})
    for seed in "abcdef":
        assert run(code, "tests", "--sets", "1", "--seed", seed).parseoutcomes() == {"passed": 1, "deselected": 1}


def test_sets_are_drawn_among_those_that_other_options_leave(run):
    """Whatever the marks of the others are: a function has as many sets as it may have."""
    code = """
    import pytest
    SLOW = [pytest.param(number, marks=pytest.mark.slow) for number in range(9)]

    @pytest.mark.parametrize("number", [*SLOW, 10, 11, 12])
    def test_it(number): pass
    """
    for marks in ("not slow", "slow", ""):
        assert run(code, "tests", "-m", marks, "--sets", "2", "--seed", "a").parseoutcomes()["passed"] == 2


def test_of_slow_tests_few_sets_of_parameters_run(run):
    """And all sets of the others, also of one function."""
    code = """
    import pytest

    @pytest.mark.parametrize("number", [*range(9), *(pytest.param(one, marks=pytest.mark.slow) for one in range(9, 18))])
    def test_both(number): pass

    @pytest.mark.jvm
    @pytest.mark.slow
    @pytest.mark.parametrize("number", range(9))
    def test_java(number): pass
    """
    result = run(code, "--few", "slow=3")
    assert result.parseoutcomes() == {"passed": 9 + 3 + 9, "deselected": 6}
    result.stdout.fnmatch_lines("sample: at most 3 sets of parameters of each function marked slow; *")


def test_of_what_is_below_a_path_few_sets_of_parameters_run(run, pytester):
    """Below the paths that are named; the header says so, and with what seed the same ones run again."""
    code = """
    import pytest

    @pytest.mark.slow
    def test_slow(): pass

    @pytest.mark.parametrize("number", range(9))
    def test_many(number): pass
    """
    pytester.makepyfile(**{"tests/there/test_there": code, "tests/test_there_too": code})
    result = run(FEW, "tests", "--few", "tests/there", "--few", "tests/test_there_too.py=5", "-v")
    drawn = "*at most 2 sets of * of tests/there, at most 5 sets of * of tests/test_there_too.py; the same again with --seed*"
    result.stdout.fnmatch_lines([drawn])
    ran = re.findall(r"(\w+)\.py::(test_\w+)", result.stdout.str())
    assert Counter(ran) == {
        ("test_there", "test_slow"): 1,
        ("test_there", "test_many"): 2,
        ("test_there_too", "test_slow"): 1,
        ("test_there_too", "test_many"): 5,
        ("test_them", "test_many"): 9,
        ("test_them", "test_two"): 2,
    }
    for wrong in ("tests/gone", "tests/there=0", "tests/there=x"):
        assert run(FEW, "--few", wrong).ret == pytest.ExitCode.USAGE_ERROR


SHARED = """
import pytest

@pytest.fixture(scope="module", params="abcdefghi")
def made(request): return request.param

def test_one(made): pass

def test_other(made): pass
"""


def test_tests_that_share_what_their_file_makes_draw_the_same_sets(run):
    """It is made for one, and for another one by another seed."""
    options = ("--sets", "1", "-v", "--seed")
    drawn = [re.findall(r"\[(\w)\] PASSED", run(SHARED, *options, seed).stdout.str()) for seed in "xyz"]
    assert [len(names) for names in drawn] == [2, 2, 2]
    assert [len({*names}) for names in drawn] == [1, 1, 1]
    assert len({names[0] for names in drawn}) > 1


def test_every_test_is_drawn_by_some_seed_and_a_fraction_is_as_large_as_it_says():
    """What is left out today runs on another day."""
    drawn = [[drawing(str(seed), f"test_{number}") < 0.1 for number in range(1000)] for seed in range(100)]
    assert all(any(column) for column in zip(*drawn, strict=True))
    assert all(60 < sum(row) < 150 for row in drawn)


@pytest.mark.parametrize(
    "fraction", ["slow=0", "jvm=1.5", "slow=-1", "slow=0.5-0.2", "slow=0.5-1.1", "slow=all", "0.5", "quick=0.5"]
)
def test_a_fraction_that_is_none_is_refused(run, fraction):
    """More than 0, at most 1."""
    result = run("def test_it(): pass", f"--sample={fraction}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--sample" in result.stderr.str()


@pytest.mark.parametrize("count", ["0", "-1", "two"])
def test_a_number_of_sets_that_is_none_is_refused(run, count):
    """At least 1; a negative one left out all but so many."""
    result = run("def test_it(): pass", f"--sets={count}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--sets: expected a number from 1 on, got '{count}'"])


def test_a_test_that_hangs_fails_by_its_own_limit_and_the_next_one_runs(run):
    """A mark gives more time, or less."""
    code = """
    import time, pytest

    @pytest.mark.timeout(1)
    def test_hangs(): time.sleep(30)

    def test_next(): pass
    """
    run(code).assert_outcomes(passed=1, failed=1)


def test_a_test_that_hangs_in_c_takes_its_process_with_it_a_while_after_its_limit(run):
    """Nothing else could end it; what it was doing is printed."""
    code = """
    import collections, itertools, pytest
    from support import limits

    limits.GRACE = 1

    @pytest.mark.timeout(1)
    def test_hangs(): collections.deque(itertools.repeat(None), maxlen=0)
    """
    result = run(code)
    assert result.ret != pytest.ExitCode.OK
    assert "1 failed" not in result.stdout.str()  # nothing was left that could count
    assert "Timeout (0:00:0" in result.stderr.str()
    assert "in test_hangs" in result.stderr.str()


def test_files_of_long_tests_are_begun_first_if_that_is_asked_for(run, pytester):
    """Each whole, and those with the same limits in their order; workers run what is left."""
    long = "import pytest\n@pytest.mark.timeout(600)\ndef test_long(): pass\n\ndef test_beside_it(): pass"
    pytester.makepyfile(**{"tests/test_zz": long, "tests/test_a": "def test_a(): pass"})
    ran = [
        re.findall(r"::(\w+) PASSED", run("def test_it(): pass", "-v", *options).stdout.str())
        for options in ([], ["--long-first"])
    ]
    assert ran == [
        ["test_a", "test_it", "test_long", "test_beside_it"],
        ["test_long", "test_beside_it", "test_a", "test_it"],
    ]
    files = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "--long-first"]
    assert run("def test_it(): pass", *files).parseoutcomes() == {"passed": 4}


def test_a_long_test_does_not_end_its_process(run):
    """However long the limits of others are."""
    code = """
    import time, pytest

    @pytest.mark.timeout(10)
    def test_long(): time.sleep(3)

    @pytest.mark.timeout(1)
    def test_next(): pass
    """
    run(code).assert_outcomes(passed=2)


def test_limits_are_those_of_a_kind(run):
    """What asks for a session starts Java, and has its time."""
    code = """
    import pytest

    @pytest.fixture
    def spark(): pass

    def limit(request):
        marker = request.node.get_closest_marker("timeout")
        return marker and marker.args[0]

    def test_quick(request): assert limit(request) is None

    @pytest.mark.slow
    def test_slow(request): assert limit(request) == 180

    def test_session(request, spark): assert limit(request) == 300

    @pytest.mark.timeout(7)
    def test_own(request, spark): assert limit(request) == 7
    """
    run(code).assert_outcomes(passed=4)
    run(code, "-m", "not jvm and not slow").assert_outcomes(passed=1, deselected=3)


def test_a_disk_that_is_nearly_full_is_told_before_the_first_test(run, monkeypatch):
    """With the folder, and what to do."""
    monkeypatch.setenv("CDCAVRO_TESTS_ROOM", str(1 << 60))
    result = run("def test_it(): pass")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "the disk is nearly full: " in result.stderr.str() + result.stdout.str()
    assert "TMPDIR" in result.stderr.str() + result.stdout.str()


def test_a_failure_on_a_full_disk_says_so_and_ends_the_run(run):
    """The next ones would fail for the same reason."""
    code = """
    import shutil
    from collections import namedtuple

    def test_fills(monkeypatch):
        shutil.disk_usage = lambda folder: namedtuple("usage", "total used free")(1, 1, 0)
        raise OSError("No space left on device")

    def test_next(): pass
    """
    result = run(code)
    result.assert_outcomes(failed=1)
    assert "the disk is full: " in result.stdout.str()


def test_what_has_no_mark_finds_no_java(run):
    """So it cannot start Java by mistake, which would take longer than all else."""
    code = """
    import os, pytest

    @pytest.fixture
    def spark(): pass

    def test_quick(): assert os.environ["JAVA_HOME"] == "/a/test/that/starts/Java/is/marked/jvm"

    def test_session(spark): assert os.environ["JAVA_HOME"] == "/java"
    """
    run(code).assert_outcomes(passed=2)


def test_tests_run_side_by_side_and_what_fails_is_the_exit_code(run, pytester, monkeypatch):
    """Tests with Java, tests without and types; where only one half has tests, that half counts."""
    pytest.importorskip("mypy", reason="the lowest versions are not those of its types")
    monkeypatch.delenv("MYPYPATH", raising=False)
    monkeypatch.setenv("CDCAVRO_TESTS_SEED", "of all")
    pytester.makefile(".ini", mypy="[mypy]\nfiles = typed.py\n")
    script = TESTS / "support" / "side_by_side.py"

    def ends(test, typed, *options):
        options = *options, "--seed", "abc"
        pytester.makepyfile(**{"tests/test_them": test, "typed": typed})
        done = pytester.run(sys.executable, script, *options)
        assert "samples are drawn by --seed abc" in done.stdout.str()
        return done.ret, dict(re.findall(r"^(\w+): ended with (\d)", done.stdout.str(), re.MULTILINE))

    run("def test_it(): pass")
    both = "import pytest\n\n@pytest.mark.jvm\ndef test_java(): assert {}\n\ndef test_other(): assert {}"
    fine, wrong = "number: int = 1", "number: int = 'x'"
    assert ends(both.format(0, 1), wrong) == (1, {"tests": "0", "spark": "1", "types": "1"})
    assert ends(both.format(1, 1), fine, "-k", "java") == (0, {"tests": "5", "spark": "0", "types": "0"})
    assert ends(both.format(1, 0), fine, "--elsewhere", "tests/test_them.py") == (
        0,
        {"tests": "5", "spark": "0", "types": "0"},
    )


def test_no_command_of_tox_is_one_whose_failure_is_ignored():
    """Such as the rest of one that was broken into lines: tox ignores what follows a dash."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    commands = {name: section["commands"] for name, section in tox.items() if "commands" in section}
    own = {f"{{[testenv]{name}}}": value for name, value in tox["testenv"].items()}
    for name, text in commands.items():
        whole = re.sub(r"\{\[testenv\]\w+\}", lambda found: own[found[0]], text).replace("\\\n", " ")
        assert whole
        assert [line for line in whole.splitlines() if line.startswith("-")] == [], name
    assert len(commands) > 10


@pytest.mark.jvm
def test_a_test_of_spark_that_is_beyond_its_limit_fails_alone(run, monkeypatch):
    """The answer for which it waited is not taken for the answer to the next question."""
    pytest.importorskip("pyspark")
    monkeypatch.delenv("JAVA_HOME")
    if JAVA is not None:
        monkeypatch.setenv("JAVA_HOME", JAVA)
    code = """
    import pytest
    from pyspark.sql import SparkSession

    @pytest.fixture(scope="module")
    def spark():
        made = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        made.range(1).collect()
        yield made
        made.stop()

    @pytest.mark.timeout(3, func_only=True)
    def test_long(spark): spark._jvm.java.lang.Thread.sleep(6_000)

    @pytest.mark.parametrize("number", range(9))
    def test_next(spark, number): assert spark.range(number).count() == number
    """
    run(code).assert_outcomes(failed=1, passed=9)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a program with its parent")
def test_a_server_of_a_killed_run_dies_with_it():
    """Otherwise it would hold memory and a port until the machine stops."""
    code = (
        "import subprocess, sys, time; from support.processes import die_with_parent\n"
        "server = subprocess.Popen(['sleep', '300'], preexec_fn=die_with_parent)\n"
        "print(server.pid, flush=True); time.sleep(300)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=TESTS, stdout=subprocess.PIPE, text=True)
    server = Path("/proc", parent.stdout.readline().strip())
    assert "sleep" in server.joinpath("cmdline").read_text()
    parent.kill()
    parent.communicate()
    until = time.monotonic() + 20
    while _runs(server) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _runs(server)


def _runs(process: Path) -> bool:
    """Return whether a process is there, and is not only waiting to be taken notice of."""
    try:
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
