"""A Spark Connect server in a process of its own, started by `cdcavro.spark.session`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pyspark

from support.ivy import alone
from support.processes import die_with_parent, free_ports

PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"
PORT = "spark.connect.grpc.binding.port"
# From Spark 4.0 on, pyspark has the jar.
JAR = "" if int(pyspark.__version__.split(".")[0]) > 3 else f"org.apache.spark:spark-connect_2.12:{pyspark.__version__}"
CODE = """
import json, sys
from cdcavro import spark
spark.session("cdcavro tests", master="local[2]", config=json.loads(sys.argv[1])).sparkContext.setLogLevel("OFF")
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def connect_server(config: Mapping[str, str]) -> Iterator[str]:
    """Start a server with these settings, give its address, and stop it."""
    (port,) = free_ports(1)
    packages = ",".join(filter(None, [JAR, config.get("spark.jars.packages", "")]))
    settings = {**config, "spark.plugins": PLUGIN, PORT: str(port), "spark.jars.packages": packages}
    command = [sys.executable, "-c", CODE, json.dumps(settings)]
    with ExitStack() as stack:
        with alone():
            server = stack.enter_context(
                subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    preexec_fn=die_with_parent,  # noqa: PLW1509
                )
            )
            # Its end of the pipe closes, and it ends.
            stack.callback(server.stdin.close)
            # Ivy may have something to say before it.
            assert "ready\n" in server.stdout
        yield f"sc://localhost:{port}"
