"""Catalogs of Iceberg tables: what is refused, and what names they have."""

from __future__ import annotations

import re

import pytest

from cdcavro.lake.catalogs import (
    check_catalog,
    check_metastore,
    has_plain_names,
    metastore_settings,
    spark_catalog,
    spark_jars,
)

REST = {"type": "rest", "uri": "https://c:8181", "credential": "me:secret", "warehouse": "prod"}


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"uri": "canary"}, "the type of a catalog is rest, sql, hive, glue, nessie, not none"),
        ({"type": "file"}, "the type of a catalog is rest, sql, hive, glue, nessie, not 'file'"),
        ({"type": "sql", "warehouse": "canary"}, "a catalog of type sql needs uri"),
        ({"type": "nessie"}, "a catalog of type nessie needs uri and warehouse"),
        *[
            ({"type": "sql", "warehouse": "w", "uri": f"postgresql{uri}"}, "in a password, @ is written %40")
            for uri in ("://u:can@ry@h/d", "+psycopg://u:p?@canary/p@h:1/d", "://u:canary", "://u:canary/d", ":canary")
        ],
    ],
)
def test_what_is_no_catalog_is_refused(stated: dict[str, str], said: str):
    """No value but the type is shown."""
    with pytest.raises(ValueError, match=f"{re.escape(said)}$"):
        check_catalog(stated)


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql+psycopg://me:p%40s/s?:#@db:5432/ice?sslmode=require",
        "postgresql://db/ice",
        "postgresql://me:p@[::1]:5432/ice",
        "postgresql://me:p@/ice?host=/run",
        "mysql://me@db",
        "sqlite:////a@b:c@d/c.db",
    ],
)
def test_an_address_of_a_database_that_is_clear_is_taken(uri: str):
    """A password may have all that ends none."""
    check_catalog({"type": "sql", "uri": uri, "warehouse": "w"})


@pytest.mark.parametrize(
    ("stated", "is_plain"),
    [
        (REST, False),
        ({"type": "hive"}, True),
        ({"type": "glue"}, True),
        (REST | {"rest.signing-name": "s3tables"}, True),
    ],
)
def test_some_catalogs_have_plain_names(stated: dict[str, str], *, is_plain: bool):
    """Those of Hive, Glue and S3 Tables."""
    assert has_plain_names(stated) == is_plain


DELEGATION = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
RESOLVING = {"io-impl": "org.apache.iceberg.io.ResolvingFileIO"}
SQL = {"type": "sql", "warehouse": "s3://b/wh"}


@pytest.mark.parametrize(
    ("stated", "java"),
    [
        (REST, {**REST, **DELEGATION}),
        (
            REST | {"header.Authorization": "Basic x", "header.x-iceberg-access-delegation": ""},
            {**REST, "header.Authorization": "Basic x", "header.x-iceberg-access-delegation": ""},
        ),
        (
            REST | {"s3.endpoint": "http://m", "s3.access-key-id": "a", "s3.region": "eu", "client.region": "eu"},
            {**REST, **DELEGATION, "s3.endpoint": "http://m", "s3.access-key-id": "a", "client.region": "eu"}
            | {"s3.path-style-access": "true"},
        ),
        (
            REST | {"s3.endpoint": "http://m", "s3.force-virtual-addressing": "True"},
            {**REST, **DELEGATION, "s3.endpoint": "http://m", "s3.path-style-access": "false"},
        ),
        (
            REST | {"rest.sigv4-enabled": "true", "rest.signing-name": "s3tables", "client.access-key-id": "a"},
            {**REST, **DELEGATION, "rest.auth.type": "sigv4", "rest.signing-name": "s3tables"}
            | {"s3.access-key-id": "a", "rest.access-key-id": "a"},
        ),
        (
            REST | {"client.access-key-id": "a", "s3.access-key-id": "b", "rest.sigv4-enabled": "false"},
            {**REST, **DELEGATION, "s3.access-key-id": "b"},
        ),
        (
            {"type": "hive", "uri": "thrift://h:1", "lock-check-retries": "9", "hive.hive2-compatible": "true"},
            {"type": "hive", "uri": "thrift://h:1", **RESOLVING},
        ),
        (
            {"type": "glue", "glue.id": "1", "glue.region": "eu"},
            {"type": "glue", "glue.id": "1", "client.region": "eu"},
        ),
        (
            SQL | {"uri": "sqlite:////f/c.db", "echo": "true", "schema_version": "v0", "init_catalog_tables": "false"},
            {"type": "jdbc", "uri": "jdbc:sqlite:/f/c.db", "warehouse": "s3://b/wh", **RESOLVING}
            | {"jdbc.schema-version": "V0", "jdbc.init-catalog-tables": "false"},
        ),
        (
            SQL | {"uri": "postgresql+psycopg2://me:p%40s/s@db:5432/ice?sslmode=require&sslrootcert=/c.pem"},
            {"type": "jdbc", "uri": "jdbc:postgresql://db:5432/ice?sslmode=require&sslrootcert=/c.pem"}
            | {"jdbc.user": "me", "jdbc.password": "p@s/s", "warehouse": "s3://b/wh", **RESOLVING}
            | {"jdbc.schema-version": "V1"},
        ),
        (
            {"type": "nessie", "uri": "http://n/api/v2", "warehouse": "w", "ref": "main"},
            {"type": "nessie", "uri": "http://n/api/v2", "warehouse": "w", "ref": "main"},
        ),
    ],
)
def test_spark_reaches_the_same_catalog(stated: dict[str, str], java: dict[str, str]):
    """By Iceberg's properties in Java, which has other names, and defaults that have to be said."""
    found = spark_catalog("prod", stated)
    assert found.pop("spark.sql.catalog.prod") == "org.apache.iceberg.spark.SparkCatalog"
    assert found.pop("spark.sql.catalog.prod.cache-enabled") == "false"
    assert {name.removeprefix("spark.sql.catalog.prod."): value for name, value in found.items()} == java


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (
            REST | {"s3.role-arn": "canary"},
            "Iceberg has nothing on Spark for the property s3.role-arn of a catalog of type",
        ),
        (REST | {"adls.account-key": "canary"}, "for the property adls.account-key of"),
        ({"type": "glue", "client.access-key-id": "canary"}, "for the property client.access-key-id of"),
        ({"type": "hive", "uri": "canary", "header.a": "canary"}, "for the property header.a of"),
        (
            REST | {"s3.region": "canary-1", "client.region": "canary-2"},
            "Spark has one property, client.region, for client",
        ),
        (
            SQL | {"uri": "mysql://canary@h/d"},
            "the uri of a catalog of type sql begins with sqlite:/// or postgresql://",
        ),
        (SQL | {"uri": "sqlite://"}, "begins with sqlite:///"),
        (SQL | {"uri": "sqlite:///:memory:"}, "is sqlite:/// and the path of a file"),
        (SQL | {"uri": "sqlite:///canary?uri=true"}, "is sqlite:/// and the path of a file"),
        (
            SQL | {"uri": "postgresql://u:canary@h/d?options=x"},
            "has a server, and of parameters sslmode and sslrootcert",
        ),
        (SQL | {"uri": "postgresql:///d"}, "in PostgreSQL has a server"),
        (SQL | {"uri": "postgresql://u:canary@h@h/d"}, "begins with sqlite:///"),
    ],
)
def test_what_java_does_not_have_is_refused_without_a_value(stated: dict[str, str], said: str):
    """The name of the property is said."""
    with pytest.raises(ValueError, match=re.escape(said)) as raised:
        spark_catalog("prod", stated)
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize("name", ["a.b", "", "a b", "spark_catalog"])
def test_a_name_that_spark_would_read_otherwise_is_refused(name: str):
    """With a dot in it, the name would be a property of another catalog."""
    with pytest.raises(ValueError, match="the name of a catalog is made of letters, digits, _ and -, not"):
        spark_catalog(name, REST)


@pytest.mark.parametrize(
    ("stated", "jars"),
    [
        (REST, []),
        (REST | {"s3.endpoint": "http://m"}, ["iceberg-aws-bundle"]),
        (REST | {"gcs.project-id": "p"}, ["iceberg-gcp-bundle"]),
        ({"type": "glue"}, ["iceberg-aws-bundle"]),
        (SQL | {"uri": "postgresql://h/d"}, ["iceberg-aws-bundle", "postgresql"]),
        ({"type": "sql", "uri": "sqlite:////f", "warehouse": "/w"}, ["sqlite-jdbc"]),
    ],
)
def test_a_catalog_needs_the_jars_of_its_store_and_database(stated: dict[str, str], jars: list[str]):
    """Those of Iceberg have its version."""
    found = [coordinate.split(":") for coordinate in spark_jars(stated, "1.2.3")]
    assert [name for _, name, _ in found] == jars
    assert {version for group, _, version in found if group == "org.apache.iceberg"} <= {"1.2.3"}


def test_a_metastore_for_delta_lake_is_hives_or_that_of_the_session():
    """Its address is all that is said of it."""
    stated = {"type": "hive", "uri": "thrift://h:9083"}
    check_metastore(stated)
    assert metastore_settings(stated) == {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": "thrift://h:9083",
    }
    assert metastore_settings({"type": "hive"}) == {"spark.sql.catalogImplementation": "hive"}
    with pytest.raises(ValueError, match="has uri only for Delta Lake, not warehouse"):
        check_metastore(stated | {"warehouse": "w"})
    with pytest.raises(ValueError, match="of type hive only, not 'unity'"):
        check_metastore({"type": "unity"})
