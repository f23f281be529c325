"""Hive's metastore, that in pyspark's jars, as a Java process on a free port of this machine, with a database of Derby's."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any
from xml.sax.saxutils import escape

import pyspark
from hive_metastore.ttypes import ShowLocksRequest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError
from pyiceberg.catalog.hive import _HiveClient

from support.processes import free_ports

_JAVA = ["-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_SECONDS = 240
_SETTINGS = {
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    # The jars have no pool of the default's kind.
    "datanucleus.connectionPoolingType": "NONE",
    # Columns change places.
    "hive.metastore.disallow.incompatible.col.type.changes": "false",
    # What looks for old locks.
    "hive.compactor.initiator.on": "true",
    "hive.support.concurrency": "true",
    "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
    "hive.txn.timeout": "40s",
    "hive.timedout.txn.reaper.start": "1s",
    "hive.timedout.txn.reaper.interval": "1s",
    "hive.async.log.enabled": "false",
}


@contextmanager
def hive_metastore(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a metastore whose database, settings and log are in a folder, give its address, and stop it."""
    (port,) = free_ports(1)
    is_new = not (folder / "metastore").exists()
    _write_settings(folder, settings or {})
    server, gateway = _launch(folder)
    try:
        hive = gateway.jvm.org.apache.hadoop.hive
        if is_new:
            # The tables of its locks, for which there are scripts otherwise.
            hive.metastore.txn.TxnDbUtil.prepDb(hive.conf.HiveConf())
        arguments = gateway.new_array(gateway.jvm.java.lang.String, 2)
        arguments[0], arguments[1] = "-p", str(port)
        Thread(target=_serve, args=(hive.metastore.HiveMetaStore, arguments), daemon=True).start()
        _await(port, folder)
        yield f"thrift://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def locks_of(uri: str) -> list[str]:
    """Return the tables for which a metastore has locks."""
    with _HiveClient(uri) as client:
        return [one.tablename for one in client.show_locks(ShowLocksRequest()).locks]


def columns_of(uri: str, database: str, table: str) -> list[str]:
    """Return the names of the columns that a metastore has of a table."""
    with _HiveClient(uri) as client:
        return [one.name for one in client.get_table(database, table).sd.cols]


def _write_settings(folder: Path, settings: Mapping[str, str]) -> None:
    places = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "hive.metastore.warehouse.dir": str(folder / "managed"),
    }
    stated = "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in {**_SETTINGS, **places, **settings}.items()
    )
    (folder / "hive-site.xml").write_text(f"<configuration>{stated}</configuration>")


def _launch(folder: Path) -> tuple[subprocess.Popen, JavaGateway]:
    """Start Java, which ends with this process."""
    jars = Path(pyspark.__file__).parent / "jars"
    options = [*_JAVA, f"-Dderby.stream.error.file={folder}/derby.log", f"-Dhive.log.dir={folder}"]
    port, server = launch_gateway(
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        classpath=f"{folder}{os.pathsep}{jars}/*",
        javaopts=options,
        die_on_exit=True,
        cwd=str(folder),
        return_proc=True,
    )
    return server, JavaGateway(gateway_parameters=GatewayParameters(port=port))


def _serve(metastore: Any, arguments: Any) -> None:
    """Let a metastore serve until Java ends."""
    with suppress(Py4JError):
        metastore.main(arguments)


def _await(port: int, folder: Path) -> None:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"the metastore did not start:\n{(folder / 'hive.log').read_text(errors='replace')[-4000:]}")
