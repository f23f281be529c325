"""Session of Spark with spark-avro, in the version of the installed pyspark, and with bounds on what it decodes."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro import binary
from cdcavro.errors import SetupError, hide_credentials
from cdcavro.exact import jsontext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.sync.outputs.writer import Rows

JAVA: Final = 17
_GET_JAVA: Final = "install one (apt-get install openjdk-17-jre-headless, or adoptium.net) and set JAVA_HOME to it"
_VERSION: Final = re.compile(r'version "(?:1\.)?([0-9]+)')
# How the traceback of a worker ends for an error of this project.
_FAULT: Final = re.compile(r"^cdcavro[.]errors[.]\w+: (.+)$", re.MULTILINE)
_LIMITS: Final = {
    "org.apache.avro.limits.bytes.maxLength": jsontext.MAX_LENGTH,
    "org.apache.avro.limits.string.maxLength": jsontext.MAX_LENGTH,
    "org.apache.avro.limits.collectionItems.maxLength": binary.MAX_COUNT,
}
_SCALA: Final = "2.13"
# Before 4.0, Spark fails at dates before 1582 and instants before 1900, which might be of the calendar of Spark 2.
_CALENDARS: Final = tuple(
    f"spark.sql.{kind}.datetimeRebaseModeIn{way}" for kind in ("avro", "parquet") for way in ("Read", "Write")
)
_PACKAGES: Final = "spark.jars.packages"
_PIECE: Final = 1 << 14
# How many bytes are kept, the last ones.
_KEPT: Final = 1 << 18
# What Ivy says as it fetches a jar.
_FETCHES: Final = b"downloading http"
_STANDARD_ERROR: Final = 2
# In seconds: how long to wait for the last words of a JVM that has ended.
_MOMENT: Final = 1.0
# The JVM of spark-submit, which runs already.
_RUNNING: Final = "PYSPARK_GATEWAY_PORT"
_OPTIONS: Final = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
REDACTED: Final = "spark.redaction.regex"
_REDACTED_OPTIONS: Final = "spark.sql.redaction.options.regex"
# Spark's page of settings, its plans and its log of events show no setting or option whose name or value matches this.
# Spark itself knows the first four, and hides the options that are called `url`.
_SECRETS: Final = (
    "(?i)secret|password|token|access[.]?key|passphrase|credential|account[.]key|private[.]?key|keystore|jaas"
    "|://[^@\\s]*:[^@\\s]*@"
)
# What pyspark goes by.
_REMOTE: Final = frozenset({"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"})
_LOADED: Final = "org.apache.spark.sql.avro.AvroDataToCatalyst"


def session(
    app_name: str = "cdcavro",
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    launch: Callable[[Mapping[str, str]], None] = lambda _: None,
) -> SparkSession:
    """Return a SparkSession with the spark-avro jar and with limits on the sizes that a payload may claim.

    `master` is Spark's own setting, by default `local[*]` outside `spark-submit`; `config` is added to the settings
    made here: its packages and Java options follow those of this function, and its `spark.redaction.regex` hides more
    on Spark's pages. `launch` is called with all of them, and may start the JVM before Spark does. Spark downloads the
    jar through Ivy. Raises `SetupError` if there is no Java of version 17 or newer, if pyspark is missing, if Spark
    does not start, if a session without the jar or the limits is running already, or if this process uses Spark
    Connect. Source of the limits: Avro's `SystemLimitException`.
    """
    if not _REMOTE.isdisjoint(os.environ):
        server = f"its server needs {coordinate()} and {_bounds()}"
        raise SetupError(f"session() starts Spark, and this process speaks Spark Connect: connect yourself; {server}")
    check_java()
    try:
        from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415
        from pyspark.sql import SparkSession  # noqa: PLC0415  pyspark may be missing
    except ImportError as error:
        raise SetupError("pyspark is not installed: pip install 'cdcavro[spark]'") from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # At DEBUG, the bridge to the JVM logs all that passes it, passwords in settings and options among it.
    bridge = logging.getLogger("py4j")
    bridge.setLevel(bridge.level or logging.INFO)
    builder = SparkSession.builder.appName(app_name)
    own = {**({} if master is None else {"spark.master": master}), **settings(config or {})}
    for key, value in own.items():
        builder = builder.config(key, value)
    try:
        launch({"spark.app.name": app_name, **own})
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        message = f"Spark did not start; what it said stands above (is {coordinate()} to be had from here?)"
        raise SetupError(message) from error
    _check_jar(spark)
    return spark


def stop(spark: SparkSession) -> None:
    """Stop a session, even if its JVM is gone already (Ctrl-C reaches both)."""
    from py4j.protocol import Py4JError  # noqa: PLC0415  see session

    with suppress(Py4JError, OSError):
        spark.stop()


def coordinate() -> str:
    """Return the Maven coordinate of the spark-avro jar that fits the installed pyspark: `group:artifact:version`."""
    import pyspark  # noqa: PLC0415  see session

    jars = Path(pyspark.__file__).parent / "jars"
    library = next(jars.glob("scala-library-*.jar"), None)
    scala = ".".join(library.name.removeprefix("scala-library-").split(".")[:2]) if library else _SCALA
    return f"org.apache.spark:spark-avro_{scala}:{pyspark.__version__}"


def settings(config: Mapping[str, str]) -> dict[str, str]:
    """Return the Spark settings of `session`, with `config` added."""
    packages = [coordinate(), *filter(None, config.get(_PACKAGES, "").split(","))]
    defaults = {
        _PACKAGES: ",".join(dict.fromkeys(packages)),
        "spark.sql.session.timeZone": "UTC",
        # Otherwise workers would import modules from the folder in which the driver was started.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        # Of each table that is written, Spark keeps about ten pieces of code; what it forgets it compiles again.
        "spark.sql.codegen.cache.maxEntries": "1000",
        **dict.fromkeys(_CALENDARS, "CORRECTED"),
    }
    hidden = {
        REDACTED: "|".join([_SECRETS, *filter(None, [config.get(REDACTED)])]),
        _REDACTED_OPTIONS: "|".join([_SECRETS, config.get(_REDACTED_OPTIONS) or "url"]),
    }
    options = {key: f"{_bounds()} {config.get(key, '')}".strip() for key in _OPTIONS}
    return {**defaults, **{key: value for key, value in config.items() if key != _PACKAGES}, **hidden, **options}


def classic(spark: SparkSession, what: str) -> Any:
    """Return a session with its JVM, in the process of its driver.

    `what` is what needs it, as the sentence begins. Raises `SetupError` for a session that speaks Spark Connect.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        raise SetupError(f"{what} needs a session in the process of its driver: this one speaks Spark Connect")
    return spark


def reach_s3(spark: SparkSession) -> None:
    """Let a session reach `s3://` as it does `s3a://`, which is all that Hadoop knows of S3 by itself."""
    hadoop = classic(spark, "S3")._jsc.hadoopConfiguration()  # noqa: SLF001  it has no Python interface
    hadoop.setIfUnset("fs.s3.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem")


def first_line(error: Exception) -> str:
    """Return the sentence of an error of this project in a worker, or the first line of Java's message.

    It has no credentials of addresses.
    """
    java = getattr(error, "java_exception", None)
    fault = _FAULT.search(str(error))
    message = fault[1] if fault else str(java if java is not None else error).strip().partition("\n")[0]
    return hide_credentials(message)


def check_java() -> None:
    """Raise `SetupError` unless there is a Java on which Spark can run."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME={home} has no bin/java" if home else "there is no java on the PATH"
        raise SetupError(f"Spark needs Java {JAVA} or newer, and {where}: {_GET_JAVA}")
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr  # noqa: S603  the user's own Java
    except (OSError, subprocess.SubprocessError) as error:
        raise SetupError(f"Spark needs Java {JAVA} or newer, and {java} does not run: {_GET_JAVA}") from error
    version = _VERSION.search(output)
    if version is None or int(version[1]) < JAVA:
        which = f"{java} is Java {version[1]}" if version else f"{java} does not say its version"
        raise SetupError(f"Spark needs Java {JAVA} or newer, and {which}: {_GET_JAVA}")


def _bounds() -> str:
    """Return the limits as options of Java."""
    return " ".join(f"-D{name}={value}" for name, value in _LIMITS.items())


def _check_jar(spark: SparkSession) -> None:
    from py4j.protocol import Py4JError  # noqa: PLC0415  see session

    try:
        spark._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_LOADED)  # type: ignore[union-attr]  # noqa: SLF001
    except Py4JError as error:
        message = f"the Spark session that runs already has no {coordinate()}: start it with cdcavro.spark.session()"
        raise SetupError(message) from error
    system = spark._jvm.java.lang.System  # type: ignore[union-attr]  # noqa: SLF001
    unset = [f"-D{name}={value}" for name, value in _LIMITS.items() if system.getProperty(name) is None]
    if unset:
        options = " ".join(unset)
        message = "the Spark session that runs already has no bounds on what a payload announces"
        raise SetupError(f"{message}: start it with cdcavro.spark.session(), or its JVMs with {options}")


def session_of(tables: Sequence[Rows]) -> SparkSession:
    """Return the session of the frames of tables, which is that of the stream."""
    rows: DataFrame = tables[0][2][0].rows
    return rows.sparkSession


class JvmOutput:
    """Hears what a JVM says, from `launch` on. `fetches` is called once if jars are fetched, which takes a while."""

    def __init__(self, fetches: Callable[[], None]) -> None:
        self._fetches: Callable[[], None] | None = fetches
        self._kept = bytearray()
        self._lock = threading.Lock()
        self._is_passed_on = False
        self._thread: threading.Thread | None = None

    def launch(self, settings: Mapping[str, str]) -> None:
        """Start the JVM of this process with settings, unless it runs. Raises `PySparkRuntimeError`."""
        # It may not be installed, which `session` tells.
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415
        from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

        if SparkContext._gateway is not None or _RUNNING in os.environ:  # noqa: SLF001  as SparkContext itself asks
            return
        conf = SparkConf().setAll(list(settings.items()))
        source, target = os.pipe()
        self._thread = threading.Thread(target=self._hear, args=(source,), daemon=True)
        self._thread.start()
        try:
            gateway = launch_gateway(conf, {"stderr": target})  # type: ignore[no-untyped-call]
        finally:
            os.close(target)
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)  # noqa: SLF001  it starts the JVM otherwise

    def pass_on(self, *, with_kept: bool) -> None:
        """Pass on what is said from now on, and what was said until now if that is wanted."""
        if with_kept and self._thread is not None:
            self._thread.join(_MOMENT)
        with self._lock:
            if with_kept:
                _write(bytes(self._kept))
            self._kept.clear()
            self._is_passed_on = True

    def drop(self) -> None:
        """Pass on nothing any more."""
        with self._lock:
            self._is_passed_on = False

    def _hear(self, source: int) -> None:
        with os.fdopen(source, "rb", buffering=0) as stream:
            while piece := stream.read(_PIECE):
                with self._lock:
                    if self._is_passed_on:
                        _write(piece)
                        continue
                    self._kept += piece
                    if self._fetches is not None and _FETCHES in self._kept:
                        self._fetches()
                        self._fetches = None
                    del self._kept[:-_KEPT]


def _write(raw: bytes) -> None:
    """Write to standard error, if there is one."""
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.flush()
            while raw:
                raw = raw[os.write(_STANDARD_ERROR, raw) :]
