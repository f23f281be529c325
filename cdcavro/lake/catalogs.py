"""Catalogs of Iceberg tables that are servers or databases: what their properties, as pyiceberg names them, must say.

Spark reaches the same catalogs by properties of Iceberg's in Java, into which `spark_catalog` translates them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from cdcavro.errors import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPE: Final = "type"
REST: Final = "rest"
SQL: Final = "sql"
HIVE: Final = "hive"
GLUE: Final = "glue"
NESSIE: Final = "nessie"
# What each kind of catalog needs beside its type.
_NEEDED: Final = {REST: ("uri",), SQL: ("uri", "warehouse"), HIVE: ("uri",), GLUE: (), NESSIE: ("uri", "warehouse")}
# Catalogs whose names have small letters, digits and `_` only, in one level: by their types, and as which service their
# requests are signed.
_PLAIN: Final = frozenset({HIVE, GLUE})
_SIGNED: Final = frozenset({"glue", "s3tables"})
# What Iceberg in Java calls as pyiceberg does, where files are and for each kind of catalog; headers beside these.
_FILES: Final = (
    *("s3.endpoint", "s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.path-style-access"),
    *("client.region", "gcs.oauth2.token", "gcs.oauth2.token-expires-at", "gcs.project-id", "gcs.service.host"),
)
_LOGIN: Final = ("token", "credential", "scope", "audience", "resource", "oauth2-server-uri")
_SAME: Final = {
    REST: ("uri", "warehouse", "prefix", *_LOGIN, "rest.signing-name", "rest.signing-region"),
    SQL: ("warehouse",),
    HIVE: ("uri", "warehouse"),
    GLUE: ("warehouse", "glue.id", "glue.endpoint", "glue.skip-archive"),
}
# What it calls otherwise; for keys of AWS that count for all of it, it has those of files and of signatures.
_OTHER: Final[Mapping[str, Mapping[str, str]]] = {
    REST: {},
    SQL: {"init_catalog_tables": "jdbc.init-catalog-tables"},
    HIVE: {},
    GLUE: {"glue.region": "client.region"},
}
_REGION: Final = {"s3.region": "client.region"}
_KEYS: Final = ("access-key-id", "secret-access-key", "session-token")
_HEADER: Final = "header."
# By this header, which pyiceberg sends by itself, a server is asked for what opens the files of tables.
_DELEGATION: Final = "header.X-Iceberg-Access-Delegation"
_SIGNS: Final = "rest.sigv4-enabled"
_VIRTUAL: Final = "s3.force-virtual-addressing"
_SCHEMA: Final = "schema_version"
# What is about pyiceberg's own client alone, or translated by itself.
_APART: Final = frozenset(
    (
        *(TYPE, _SIGNS, _VIRTUAL, "echo", "pool_pre_ping", "hive.hive2-compatible", "py-io-impl"),
        *("lock-check-min-wait-time", "lock-check-max-wait-time", "lock-check-retries"),
    )
)
# An address of SQLAlchemy's, and what it may say of PostgreSQL besides, which both drivers call so.
_ADDRESS: Final = re.compile(
    r"(?P<kind>[a-z0-9]+)(?:\+[a-z0-9_]+)?://(?:(?P<user>[^:/@]*)(?::(?P<password>[^@]*))?@)?(?P<server>[^/?@]*)"
    r"(?:/(?P<database>[^?%]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
_SECURITY: Final = re.compile(r"(?:(?:sslmode|sslrootcert)=[^&=?#]+(?:&(?!\Z)|\Z))+")
# An address in which nobody takes a part of a password for a server or a port, and shows it.
_CLEAR: Final = re.compile(r"[^@:]*://(?:[^@]*@)?(?:\[[^]@]*\]|[^@/?:]*)(?::[0-9]*)?(?:[/?][^@]*)?", re.DOTALL)
_SQLITE: Final = "sqlite"
_POSTGRESQL: Final = "postgresql"
# The drivers of databases, and what begins the properties for which a library of Iceberg's is needed.
_DRIVERS: Final = {_SQLITE: "org.xerial:sqlite-jdbc:3.50.3.0", _POSTGRESQL: "org.postgresql:postgresql:42.7.8"}
_BUNDLES: Final = {"aws": ("s3.", "client.", "glue.", "rest.sig"), "gcp": ("gcs.",)}


def check_catalog(properties: Mapping[str, str]) -> None:
    """Raise `ValueError`, which shows no value but the type, for properties that are those of no catalog."""
    kind = properties.get(TYPE)
    if kind not in _NEEDED:
        said = "none" if kind is None else shown(kind)
        raise ValueError(f"the type of a catalog is {', '.join(_NEEDED)}, not {said}")
    missing = [name for name in _NEEDED[kind] if not properties.get(name)]
    if missing:
        raise ValueError(f"a catalog of type {kind} needs {' and '.join(missing)}")
    uri = properties.get("uri", "")
    if kind == SQL and not uri.startswith(_SQLITE) and _CLEAR.fullmatch(uri) is None:
        raise ValueError(
            "the uri of a catalog of type sql has a server after its only @, and a number as its port: in a password, @"
            " is written %40"
        )


def check_metastore(properties: Mapping[str, str]) -> None:
    """Raise `ValueError`, which shows no value but the type, unless properties are those of a metastore for Delta Lake.

    It is Hive's, with `uri`, or the one that the session of Spark has.
    """
    kind, others = properties.get(TYPE), sorted({*properties} - {TYPE, "uri"})
    if kind != HIVE:
        said = "none" if kind is None else shown(kind)
        raise ValueError(f"tables of Delta Lake have names in catalogs of type {HIVE} only, not {said}")
    if others:
        raise ValueError(f"a catalog of type {HIVE} has uri only for Delta Lake, not {', '.join(others)}")


def metastore_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with which a session of Spark has a metastore for Delta Lake."""
    address = {"spark.hadoop.hive.metastore.uris": properties["uri"]} if "uri" in properties else {}
    return {"spark.sql.catalogImplementation": "hive", **address}


def has_plain_names(properties: Mapping[str, str]) -> bool:
    """Return whether a catalog takes only names of small letters, digits and `_`, in one level of namespaces."""
    return properties.get(TYPE) in _PLAIN or properties.get("rest.signing-name") in _SIGNED


def catalog_setting(name: str) -> str:
    """Return the setting of Spark's that makes a catalog of this name; those of its properties begin with it and a dot."""
    return f"spark.sql.catalog.{name}"


def spark_catalog(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of Spark by which it reaches the catalog with this name and these properties.

    A database has the name of the catalog beside each table, so Spark's catalog is called the same. The properties of
    Nessie, which pyiceberg does not know, are Java's. Raises `ValueError`, which shows no value, for a property that Java
    does not have.

    >>> spark_catalog("prod", {"type": "rest", "uri": "https://c", "token": "t"})["spark.sql.catalog.prod.token"]
    't'
    """
    if re.fullmatch(r"[\w-]+", name) is None or name == "spark_catalog":
        raise ValueError(f"on Spark, the name of a catalog is made of letters, digits, _ and -, not {shown(name)}")
    kind, own = properties[TYPE], catalog_setting(name)
    java: dict[str, str] = {}
    if kind == NESSIE:
        java = {stated: value for stated, value in properties.items() if stated != TYPE}
    else:
        for stated, value in properties.items():
            for target, meant in _java_properties(kind, stated, value, properties).items():
                if java.setdefault(target, meant) != meant:
                    raise ValueError(
                        f"Spark has one property, {target}, for {stated} of a catalog and another, which differ"
                    )
        java |= _added_properties(kind, properties)
    # Each session has a catalog of its own, which would not see what a stream, in another session, has written.
    java |= {TYPE: "jdbc" if kind == SQL else kind, "cache-enabled": "false"}
    return {own: "org.apache.iceberg.spark.SparkCatalog", **{f"{own}.{one}": value for one, value in java.items()}}


def _java_properties(kind: str, name: str, value: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return what a property is in Java, which may be nothing, or several."""
    if name in _APART:
        return {}
    if name in _FILES or name in _SAME[kind] or (kind == REST and name.startswith(_HEADER)):
        return {name: value}
    other = {**_REGION, **_OTHER[kind]}
    if name in other:
        return {other[name]: value}
    key = name.removeprefix("client.")
    if kind != GLUE and key in _KEYS and key != name:
        places = ["s3", "rest"] if _is_true(properties.get(_SIGNS)) else ["s3"]
        return {f"{place}.{key}": value for place in places if place == "rest" or f"s3.{key}" not in properties}
    if kind == SQL and name == "uri":
        return _jdbc_properties(value)
    if kind == SQL and name == _SCHEMA:
        return {"jdbc.schema-version": value.upper()}
    raise ValueError(
        f"Iceberg has nothing on Spark for the property {name} of a catalog of type {kind}: leave it out, and say in"
        " [spark], or to the session, what Spark needs instead"
    )


def _added_properties(kind: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return what pyiceberg does without being told, and Java if it is."""
    java = {}
    if "s3.endpoint" in properties and "s3.path-style-access" not in properties:
        java["s3.path-style-access"] = "false" if _is_true(properties.get(_VIRTUAL)) else "true"
    if kind in (SQL, HIVE):
        # Each file is opened by what its address begins with.
        java["io-impl"] = "org.apache.iceberg.io.ResolvingFileIO"
    if kind == SQL and _SCHEMA not in properties:
        # Spark looks for a view of each name, for which the older tables of a catalog lack a column; pyiceberg's have it.
        java["jdbc.schema-version"] = "V1"
    if kind == REST:
        if _is_true(properties.get(_SIGNS)):
            java["rest.auth.type"] = "sigv4"
        if _DELEGATION.lower() not in map(str.lower, properties):
            java[_DELEGATION] = "vended-credentials"
    return java


def _is_true(value: str | None) -> bool:
    return value is not None and value.lower() == "true"


def _jdbc_properties(uri: str) -> dict[str, str]:
    """Return the address of a database, which SQLAlchemy has in another form, and its login. Raises `ValueError`."""
    found = _ADDRESS.fullmatch(uri)
    if found is None or found["kind"] not in _DRIVERS or not found["database"]:
        raise ValueError(
            "on Spark, the uri of a catalog of type sql begins with sqlite:/// or postgresql:// and a server"
        )
    query = found["query"]
    if found["kind"] == _SQLITE:
        if found["server"] or found["user"] is not None or query is not None or found["database"] == ":memory:":
            raise ValueError("on Spark, the uri of a catalog in SQLite is sqlite:/// and the path of a file")
        return {"uri": f"jdbc:{_SQLITE}:{Path(found['database']).absolute()}"}
    if not found["server"] or (query is not None and _SECURITY.fullmatch(query) is None):
        raise ValueError(
            "on Spark, the uri of a catalog in PostgreSQL has a server, and of parameters sslmode and sslrootcert only"
        )
    address = f"jdbc:{_POSTGRESQL}://{found['server']}/{found['database']}{'' if query is None else f'?{query}'}"
    login = {f"jdbc.{one}": unquote(found[one]) for one in ("user", "password") if found[one] is not None}
    return {"uri": address, **login}


def spark_jars(properties: Mapping[str, str], version: str) -> list[str]:
    """Return Maven coordinates of what Spark needs for a catalog beside Iceberg of a version.

    >>> spark_jars({"type": "glue"}, "1.11.0")
    ['org.apache.iceberg:iceberg-aws-bundle:1.11.0']
    """
    kind = properties[TYPE]
    is_s3 = kind == GLUE or properties.get("warehouse", "").startswith("s3")
    stores = [
        store
        for store, starts in _BUNDLES.items()
        if any(name.startswith(starts) for name in properties) or (store == "aws" and is_s3)
    ]
    jars = [f"org.apache.iceberg:iceberg-{store}-bundle:{version}" for store in stores]
    address = _ADDRESS.fullmatch(properties["uri"]) if kind == SQL else None
    return jars if address is None else [*jars, _DRIVERS[address["kind"]]]
