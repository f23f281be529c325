"""Java Avro 1.8.2 itself, with its command-line tools: the version that the wire schemas promise to be valid for."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import fastavro
import pyspark
import pytest

import cdcavro
from support.messages import goldens

AVRO = "1.8.2"


@pytest.fixture(scope="session")
def avro_tools(jars) -> Path:
    """The jar of Avro's tools, fetched by the Ivy that pyspark ships."""
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    wanted = ["-dependency", "org.apache.avro", "avro-tools", AVRO, "-confs", "default", "-notransitive"]
    subprocess.run(
        ["java", "-jar", ivy, *wanted, "-retrieve", f"{jars}/[artifact]-[revision].[ext]"],
        check=True,
        capture_output=True,
    )
    return jars / f"avro-tools-{AVRO}.jar"


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
