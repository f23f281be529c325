"""Java Avro 1.8.2 itself, the version that the wire schemas promise to be valid for, and Spark's own, as parsers."""

from __future__ import annotations

import json
import subprocess

import fastavro
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import cdcavro
from cdcavro.errors import SchemaError
from support.lenient_schemas import LENIENT, REFUSED, REFUSED_SINCE
from support.messages import goldens


@pytest.fixture
def java(avro_tools, tmp_path):
    """Run one of the tools on a format's schema and give what it prints."""

    def run(tool: str, format: str, *arguments: str) -> str:
        schema = tmp_path / "schema.avsc"
        schema.write_text(cdcavro.load_schema(format).json, encoding="utf-8")
        command = ["java", "-Dfile.encoding=UTF-8", "-jar", avro_tools, tool, "--schema-file", schema, *arguments]
        done = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
        return done.stdout.decode()

    return run


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_java_parses_the_schema_and_reads_our_payload(java, tmp_path, format):
    """`fragtojson` reads one golden payload with the schema; Avro's JSON names the branches that we chose."""
    text = goldens(format)[-1]
    (tmp_path / "payload").write_bytes(cdcavro.encode(text, format))
    shown = json.loads(java("fragtojson", format, "payload"))
    schema = json.loads(cdcavro.load_schema(format).json)
    assert list(shown) == [field["name"] for field in schema["fields"]]
    assert shown["extras"] == {}


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_we_parse_what_java_writes(java, tmp_path, format):
    """Java's container file holds the schema, attributes included, as we read it."""
    java("random", format, "--count", "3", "random.avro")
    with (tmp_path / "random.avro").open("rb") as file:
        found = fastavro.reader(file).metadata["avro.schema"]
    schema = cdcavro.parse_schema(found)
    assert schema.canonical == cdcavro.load_schema(format).canonical
    assert json.loads(found) == json.loads(cdcavro.load_schema(format).json)


class Parser:
    """Avro Java's parser, of one version."""

    def __init__(self, session, loader) -> None:
        self._jvm, self._gateway = session._jvm, session.sparkContext._gateway
        self._loader = loader

    def canonical(self, text: str) -> str | None:
        """Return the canonical form of a schema; None if this version refuses it."""
        schema = self._loader.loadClass("org.apache.avro.Schema")
        normal = self._loader.loadClass("org.apache.avro.SchemaNormalization")
        parser = self._loader.loadClass("org.apache.avro.Schema$Parser")
        string = self._jvm.java.lang.Class.forName("java.lang.String")
        try:
            parsed = self._call(parser, "parse", string, parser.getDeclaredConstructor(None).newInstance(None), text)
            return self._call(normal, "toParsingForm", schema, None, parsed)
        except (Py4JJavaError, PySparkException):
            return None

    def _call(self, owner, name, kind, instance, argument):
        method = owner.getMethod(name, self._array(self._jvm.java.lang.Class, kind))
        return method.invoke(instance, self._array(self._jvm.java.lang.Object, argument))

    def _array(self, kind, value):
        array = self._gateway.new_array(kind, 1)
        array[0] = value
        return array


@pytest.fixture(scope="session")
def parsers(spark, avro_tools) -> tuple[Parser, Parser]:
    """The parsers of Avro Java 1.8.2 and of the version that Spark ships."""
    jvm = spark._jvm
    urls = spark.sparkContext._gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.io.File(str(avro_tools)).toURI().toURL()
    old = jvm.java.net.URLClassLoader(urls, jvm.java.lang.ClassLoader.getPlatformClassLoader())
    return Parser(spark, old), Parser(spark, jvm.java.lang.Thread.currentThread().getContextClassLoader())


@pytest.mark.parametrize("text", [one for one, _ in LENIENT.values()], ids=LENIENT)
def test_we_parse_what_avro_java_parses(parsers, text):
    """In either version, to the same canonical form."""
    old, new = (parser.canonical(text) for parser in parsers)
    assert cdcavro.parse_schema(text).canonical in {old, new} - {None}
    assert None in (old, new) or old == new


@pytest.mark.parametrize("text", [*REFUSED.values(), *REFUSED_SINCE.values()], ids=[*REFUSED, *REFUSED_SINCE])
def test_we_refuse_what_avro_java_refuses(parsers, text):
    """What Spark's version refuses; the old one does not look at some of it, and no reader could use it."""
    old, new = (parser.canonical(text) for parser in parsers)
    assert new is None
    assert (old is None) is (text in REFUSED.values())
    with pytest.raises(SchemaError):
        cdcavro.parse_schema(text)


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_both_versions_have_our_canonical_form(parsers, format):
    """Of each wire schema."""
    schema = cdcavro.load_schema(format)
    assert [parser.canonical(schema.json) for parser in parsers] == [schema.canonical] * 2
