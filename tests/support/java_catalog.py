"""A catalog as Iceberg in Java reaches it, which is what Spark calls: in a process of its own, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from cdcavro.lake.catalogs import catalog_setting, spark_catalog
from cdcavro.spark.lake import lake_settings
from support.kafka_server import fetched

_JAVA = ["-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


@dataclass
class JavaCatalog:
    """A catalog; `jvm` is the view of its process."""

    catalog: Any
    jvm: Any
    gateway: JavaGateway

    def identifier(self, namespace: str, name: str) -> Any:
        """Return what names a table."""
        return self.jvm.org.apache.iceberg.catalog.TableIdentifier.of(self._space(namespace), name)

    def create(self, namespace: str, name: str, column: str) -> Any:
        """Create a namespace and a table with one column of integers in it, and return the table."""
        self.catalog.createNamespace(self._space(namespace))
        iceberg, fields = self.jvm.org.apache.iceberg, self.jvm.java.util.ArrayList()
        fields.add(iceberg.types.Types.NestedField.optional(1, column, self.integer))
        return self.catalog.createTable(self.identifier(namespace, name), iceberg.Schema(fields))

    def _space(self, name: str) -> Any:
        parts = self.gateway.new_array(self.jvm.java.lang.String, 1)
        parts[0] = name
        return self.jvm.org.apache.iceberg.catalog.Namespace.of(parts)

    @property
    def integer(self) -> Any:
        """The type of integers."""
        return self.jvm.org.apache.iceberg.types.Types.IntegerType.get()


@contextmanager
def java_catalog(folder: Path, name: str, properties: Mapping[str, str]) -> Iterator[JavaCatalog]:
    """Yield the catalog with these properties, as pyiceberg names them, by what Spark is given for it; jars are in a folder."""
    needed = lake_settings(catalog=name, properties=properties)["spark.jars.packages"].split(",")
    packages = [one for one in needed if one.startswith("org.apache.iceberg:")]
    jars = fetched(
        folder, [(group, one, version) for group, one, version in (p.split(":") for p in packages)], is_whole=False
    )
    libraries = Path(pyspark.__file__).parent / "jars"
    port, server = launch_gateway(
        jarpath=str(next(libraries.glob("py4j-*.jar"))),
        classpath=":".join([f"{libraries}/*", *map(str, jars)]),
        javaopts=_JAVA,
        die_on_exit=True,
        return_proc=True,
    )
    try:
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
        stated, own = gateway.jvm.java.util.HashMap(), f"{catalog_setting(name)}."
        for key, value in spark_catalog(name, properties).items():
            if key.startswith(own):
                stated[key.removeprefix(own)] = value
        hadoop = gateway.jvm.org.apache.hadoop.conf.Configuration()
        made = gateway.jvm.org.apache.iceberg.CatalogUtil.buildIcebergCatalog(name, stated, hadoop)
        yield JavaCatalog(made, gateway.jvm, gateway)
    except Py4JJavaError as error:
        # It can be shown only while its process runs.
        raise AssertionError(str(error)) from None
    finally:
        server.kill()
        server.wait()
