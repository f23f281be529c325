"""`cdcavro doctor`: what is installed, what is missing for what, and what is broken."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from cdcavro.cli import main
from cdcavro.cli.commands import doctor
from cdcavro.engine.machine import COMPILED
from support.places import ROOT

COMMAND = str(Path(sys.executable).with_name("cdcavro"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_HAS_SPARK = pytest.mark.skipif(find_spec("pyspark") is None, reason="needs pyspark")


def run(*arguments):
    """Run the command inside this process."""
    return CliRunner().invoke(main, ["doctor", *arguments], catch_exceptions=False)


def checks():
    """What is found, by name."""
    done = run("--json")
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}, done.exit_code


@pytest.fixture(autouse=True)
def java(tmp_path, monkeypatch):
    """Make a Java that says a version, and set JAVA_HOME to it; at first one that Spark takes.

    The tests that start no Java are run without one.
    """

    def made(says, release=None):
        home = tmp_path / "java"
        (home / "bin").mkdir(parents=True, exist_ok=True)
        (home / "bin" / "java").write_text(f"#!/bin/sh\necho '{says}' >&2\n")
        (home / "bin" / "java").chmod(0o755)
        (home / "release").unlink(missing_ok=True)
        if release is not None:
            (home / "release").write_text(release)
        monkeypatch.setenv("JAVA_HOME", str(home))
        return home / "bin" / "java"

    made("", 'JAVA_VERSION="17.0.15"')
    return made


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """Let a version of a package seem installed, as a folder of metadata that is found first."""

    def made(name, version):
        folder = tmp_path / "site" / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        monkeypatch.syspath_prepend(str(tmp_path / "site"))

    return made


@_HAS_SPARK
def test_every_extra_and_what_it_needs_is_told():
    """With the versions that are installed; this environment has all, and nothing in it is broken."""
    found, code = checks()
    assert (code, [check for check in found.values() if check["state"] == "broken"]) == (0, [])
    assert found["engine"]["found"] == ("compiled" if COMPILED else "off, by CDCAVRO_ENGINE: all is exact, and slower")
    for extra, packages in PROJECT["optional-dependencies"].items():
        said = found[f"[{extra}]"]["found"]
        assert said.startswith(doctor.PURPOSES[extra])
        for package in packages:
            name = package.partition(">")[0].partition("[")[0]
            assert f"{name} {metadata.version(name)}" in said
    assert all(f"{package.partition('>')[0]} " in found["required"]["found"] for package in PROJECT["dependencies"])
    assert set(doctor.PURPOSES) == set(PROJECT["optional-dependencies"])
    lines = run().stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(found)


def test_what_is_missing_comes_with_the_command_that_brings_it():
    """It is no fault, unless every command needs it."""
    missing = doctor._extra("arrow", [("no-such-package", ">=18"), ("click", ">=8")])
    assert missing == (
        "[arrow]",
        "missing",
        f"{doctor.PURPOSES['arrow']}: no no-such-package",
        "pip install 'cdcavro[arrow]'",
    )
    assert doctor._extra("", [("no-such-package", "")]).state == "broken"


@pytest.mark.parametrize(("version", "state"), [("17.9", "broken"), ("18", "ok"), ("18.0.1", "ok"), ("99", "ok")])
def test_a_version_that_does_not_fit_is_broken(distribution, version, state):
    """The exit code is 2 then."""
    distribution("pyarrow", version)
    found, code = checks()
    assert found["[arrow]"]["state"] == state
    assert code == (2 if state == "broken" else 0)
    if state == "broken":
        assert f"pyarrow {version} (>=18 is needed)" in found["[arrow]"]["found"]


def test_a_package_without_its_module_is_broken(distribution):
    """As an install that was interrupted leaves one."""
    distribution("nothing-there", "2.0")
    broken = doctor._extra("arrow", [("nothing-there", ">=1")])
    assert (broken.state, broken.found.rpartition(": ")[2]) == (
        "broken",
        "nothing-there 2.0 has no module nothing_there",
    )


@pytest.mark.parametrize(
    ("says", "release", "state", "found"),
    [
        ('openjdk version "21.0.2" 2024-01-16', None, "ok", "21.0.2, "),
        ('java version "1.8.0_402"', None, "broken", "8.0_402, "),
        ("", 'IMPLEMENTOR="x"\nJAVA_VERSION="17.0.15"\n', "ok", "17.0.15, "),
        ("Segmentation fault", None, "broken", ""),
    ],
)
def test_the_java_of_java_home_is_told_with_its_version(java, says, release, state, found):
    """By its release file, which is faster than starting it, else by what it prints."""
    path = java(says, release)
    said, code = checks()
    expected = f"{found}{path}" if found else f"{path} does not say its version"
    assert (said["Java"]["state"], said["Java"]["found"], code) == (state, expected, 2 if state == "broken" else 0)


def test_no_java_is_broken_only_where_one_is_stated(monkeypatch, tmp_path):
    """A JAVA_HOME without a Java keeps Spark from starting even if there is another one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert checks()[0]["Java"]["state"] == "missing"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert checks()[0]["Java"]["state"] == "broken"


@_HAS_SPARK
def test_the_jar_is_that_of_the_installed_spark(monkeypatch, tmp_path):
    """Of another version it is none."""
    monkeypatch.setenv("HOME", str(tmp_path))
    jars = tmp_path / ".ivy2.5.2" / "jars"
    jars.mkdir(parents=True)
    (jars / "org.apache.spark_spark-avro_2.13-1.0.0.jar").touch()
    assert checks()[0]["spark-avro"]["state"] == "missing"
    jar = jars / f"org.apache.spark_spark-avro_2.13-{metadata.version('pyspark')}.jar"
    jar.touch()
    assert checks()[0]["spark-avro"]["found"] == str(jar)


@pytest.mark.slow
def test_nothing_secret_is_printed_and_nothing_slow_imported(monkeypatch):
    """Neither pyspark nor pyarrow nor the client of Kafka, each of which takes longer than all of it."""
    monkeypatch.setenv("JAVA_HOME", "https://user:hidden@host/")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    program = f"import sys; sys.argv = [{COMMAND!r}, 'doctor', '--json']; from cdcavro.cli import main\n"
    program += "try: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert {"pyspark", "pyarrow", "pandas", "confluent_kafka", "deltalake", "sqlglot"}.isdisjoint(done.stderr.split())
    assert "click" in done.stderr.split()
    assert "hidden" not in done.stdout


@pytest.mark.jvm
def test_spark_needs_the_java_that_is_asked_for():
    """Both say the same version."""
    from cdcavro.spark.session import JAVA  # noqa: PLC0415  it imports pyspark

    assert doctor.JAVA == JAVA
