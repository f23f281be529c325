"""`doctor`: what of cdcavro is installed on this machine, what is missing for what, and what is broken.

Nothing that it looks at is imported or started, so that it takes no time and works where an import fails.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from cdcavro.cli.console import table
from cdcavro.cli.group import UNUSABLE, example
from cdcavro.engine.machine import COMPILED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OK: Final = "ok"
MISSING: Final = "missing"
BROKEN: Final = "broken"
# The oldest Java on which Spark runs here.
JAVA: Final = 17
_NAME: Final = "cdcavro"
# What each extra is for; the package's metadata says what is in it.
PURPOSES: Final = {
    "arrow": "Arrow and Parquet, files packed with Zstandard",
    "datahub": "records of DataHub's SDK",
    "encrypt": 'rejects_raw = "encrypt": rejects that a private key alone opens',
    "generate": "generated pydantic classes",
    "hive": "sync --local: Iceberg tables in Hive's metastore",
    "local": "sync --local: lake tables and topics without Java",
    "metrics": "sync --metrics: metrics and health over HTTP",
    "openlineage": "sync --openlineage: events on runs and lake tables",
    "opentelemetry": "sync --opentelemetry: metrics and spans by OTLP",
    "postgresql": "sync --local: an Iceberg catalog in PostgreSQL",
    "registry": "a schema registry at an address",
    "spark": "Spark: run and sync on it, Columns",
    "store": "sync: a state in an object store",
}
# What a distribution is imported as, where that is another name.
_MODULES: Final = {
    "confluent-kafka": "confluent_kafka",
    "openlineage-python": "openlineage.client",
    "opentelemetry-exporter-otlp-proto-grpc": "opentelemetry.exporter.otlp.proto.grpc",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry.exporter.otlp.proto.http",
    "opentelemetry-sdk": "opentelemetry.sdk",
    "pydatahub": "datahub",
}
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*([^;]*?)\s*(?:;\s*extra == ['\"]([a-z]+)['\"])?")
_BOUND: Final = re.compile(r"(>=|<=|==|<|>)\s*([0-9][0-9.]*)")
_NUMBERS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_JAVA_VERSION: Final = re.compile(r'(?:JAVA_VERSION=|version )"(?:1\.)?([0-9]+)([^"]*)"')
# In seconds.
_PATIENCE: Final = 10


class Check(NamedTuple):
    """What was found of one thing."""

    # What was looked at.
    name: str
    # `OK`, `MISSING` or `BROKEN`.
    state: str
    # What is there, or what is wrong.
    found: str
    # What to do, empty if nothing is to be done.
    remedy: str = ""


@click.command(short_help="Show what is installed, missing or broken.", epilog=example("cdcavro doctor"))
@click.option("--json", "is_json", is_flag=True, help="Print JSON, for a program that reads it.")
@click.pass_context
def doctor(ctx: click.Context, *, is_json: bool) -> None:
    """Show what is installed, what is missing for what, and what is broken.

    This covers Python, the engine, the extras with their packages, Java and Spark's jar. Missing parts are not an
    error: the exit code is 2 only if something that is installed cannot work.
    """
    checks = list(examine())
    if is_json:
        click.echo(json.dumps({"checks": [check._asdict() for check in checks]}))
    else:
        click.echo(
            table(("", "", "found", "what to do"), [(one.name, one.state, one.found, one.remedy) for one in checks])
        )
    ctx.exit(UNUSABLE if any(check.state == BROKEN for check in checks) else 0)


def examine() -> Iterator[Check]:
    """Yield what is found, the most basic things first."""
    yield Check("cdcavro", OK, metadata.version(_NAME))
    yield Check("Python", OK, f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield _engine()
    extras: dict[str, list[tuple[str, str]]] = {"": [], **{name: [] for name in PURPOSES}}
    for requirement in metadata.requires(_NAME) or ():
        match = _REQUIREMENT.fullmatch(requirement)
        if match is not None:
            extras.setdefault(match[3] or "", []).append((match[1], match[2]))
    for extra, packages in extras.items():
        yield _extra(extra, packages)
    yield _java()
    yield _jar()


def _engine() -> Check:
    if COMPILED:
        return Check("engine", OK, "compiled")
    if os.environ.get("CDCAVRO_ENGINE") == "off":
        return Check("engine", OK, "off, by CDCAVRO_ENGINE: all is exact, and slower")
    remedy = "install a C compiler and reinstall cdcavro: the same results, many times as fast"
    return Check("engine", MISSING, "pure Python: not compiled when it was installed", remedy)


def _extra(extra: str, packages: Sequence[tuple[str, str]]) -> Check:
    """Return what of an extra is installed; an empty name is what every use needs."""
    found = [(name, bounds, _version(name)) for name, bounds in packages]
    install = f"pip install 'cdcavro[{extra}]'" if extra else "pip install cdcavro"
    purpose = PURPOSES.get(extra, extra) if extra else "what every command needs"
    title = f"[{extra}]" if extra else "required"
    wrong = [
        f"{name} {version} ({bounds} is needed)"
        for name, bounds, version in found
        if version and not fits(version, bounds)
    ]
    wrong += [
        f"{name} {version} has no module {_module(name)}"
        for name, _, version in found
        if version and not _is_there(name)
    ]
    lacking = [name for name, _, version in found if version is None]
    if wrong:
        return Check(title, BROKEN, f"{purpose}: {', '.join(wrong)}", install)
    if lacking:
        return Check(title, MISSING if extra else BROKEN, f"{purpose}: no {', '.join(lacking)}", install)
    return Check(title, OK, f"{purpose}: " + ", ".join(f"{name} {version}" for name, _, version in found))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _module(name: str) -> str:
    return _MODULES.get(name, name.replace("-", "_"))


def _is_there(name: str) -> bool:
    try:
        return util.find_spec(_module(name)) is not None
    except ModuleNotFoundError:
        # It would be within a module that is not there.
        return False


def fits(version: str, bounds: str) -> bool:
    """Return whether a version is within bounds, by the numbers that it begins with.

    >>> fits("1.6.10", "<1.7,>=1.6.6"), fits("1.7", "<1.7,>=1.6.6"), fits("30.0rc1", ">=30")
    (True, False, True)
    """
    own = _numbers(version)
    holds = {
        ">=": lambda other: own >= other,
        "<=": lambda other: own <= other,
        "==": lambda other: own == other,
        "<": lambda other: own < other,
        ">": lambda other: own > other,
    }
    return all(holds[sign](_numbers(other)) for sign, other in _BOUND.findall(bounds))


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without zeros at the end: 1.0 is 1."""
    match = _NUMBERS.match(version)
    parts = [int(part) for part in match[0].split(".")] if match else []
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def _java() -> Check:
    """Return which Java Spark would take: that of JAVA_HOME, else that on the PATH."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    remedy = f"for Spark: install Java {JAVA} or newer (adoptium.net) and set JAVA_HOME to it"
    if java is None:
        return Check(
            "Java", BROKEN if home else MISSING, "JAVA_HOME has no bin/java" if home else "none on the PATH", remedy
        )
    match = _JAVA_VERSION.search(_java_says(Path(java)))
    if match is None:
        return Check("Java", BROKEN, f"{java} does not say its version", remedy)
    said = f"{match[1]}{match[2]}, {java}"
    return Check("Java", OK, said) if int(match[1]) >= JAVA else Check("Java", BROKEN, said, remedy)


def _java_says(java: Path) -> str:
    """Return a text with the version of a Java: its release file, or what it prints, which takes longer."""
    release = java.resolve().parent.parent / "release"
    try:
        if release.is_file():
            return release.read_text(errors="replace")
        return subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_PATIENCE, check=False).stderr  # noqa: S603  the user's own Java
    except (OSError, subprocess.SubprocessError):
        return ""


def _jar() -> Check:
    """Return whether the jar that reads Avro on Spark was fetched for the installed pyspark."""
    version = _version("pyspark")
    if version is None:
        return Check("spark-avro", MISSING, "no pyspark yet, whose version it has")
    name = f"org.apache.spark_spark-avro_*-{version}.jar"
    folders = [folder / "jars" for folder in sorted(Path.home().glob(".ivy2*"))]
    jar = next((jar for folder in folders for jar in sorted(folder.glob(name))), None)
    if jar is None:
        return Check(
            "spark-avro",
            MISSING,
            f"not among the jars of Ivy for Spark {version}",
            "Spark fetches it when it first starts",
        )
    return Check("spark-avro", OK, str(jar))
