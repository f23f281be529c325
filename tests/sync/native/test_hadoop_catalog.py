"""The catalog of a warehouse folder: its files are those of Java's, and of two writers one is refused."""

from __future__ import annotations

import gzip
import threading
from pathlib import Path

import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.table.update import AssertTableUUID, SetLocationUpdate
from pyiceberg.types import IntegerType, NestedField

from cdcavro.sync.native.hadoop_catalog import HadoopCatalog, version_of

SCHEMA = Schema(NestedField(1, "a.b", IntegerType(), required=False, doc="said"))
TABLE = ("d b", "s~~", "t")


@pytest.fixture
def catalog(tmp_path: Path) -> HadoopCatalog:
    """A catalog with a table, which has one version."""
    made = HadoopCatalog("ice", str(tmp_path / "ware house"))
    made.create_namespace(TABLE[:-1])
    made.create_table(TABLE, SCHEMA, properties={"format-version": "2", "p": "0"})
    return made


def metadata(catalog: HadoopCatalog) -> Path:
    """Return the folder of the table's versions."""
    return catalog.folder.joinpath(*TABLE, "metadata")


def put(catalog: HadoopCatalog, **properties: str) -> None:
    """Commit properties."""
    with catalog.load_table(TABLE).transaction() as transaction:
        transaction.set_properties(properties)


def test_namespaces_and_tables_are_folders(catalog: HadoopCatalog):
    """A table's folder is no namespace, and a hidden one is nothing."""
    (catalog.folder / ".trash").mkdir()
    (catalog.folder / "empty").mkdir()
    assert catalog.list_namespaces() == [("d b",), ("empty",)]
    assert catalog.list_namespaces("d b") == [TABLE[:-1]]
    assert catalog.list_namespaces(TABLE[:-1]) == []
    assert catalog.list_tables(TABLE[:-1]) == [TABLE]
    assert catalog.list_tables("d b") == catalog.list_tables("empty") == []
    assert catalog.load_namespace_properties("d b") == {"location": f"{catalog.folder}/d b"}
    with pytest.raises(NamespaceAlreadyExistsError, match=r"ice\.d b"):
        catalog.create_namespace("d b")
    with pytest.raises(NoSuchNamespaceError, match=r"ice\.none"):
        catalog.list_tables("none")
    with pytest.raises(NoSuchTableError, match=r"ice\.d b\.none"):
        catalog.load_table(("d b", "none"))
    assert not catalog.table_exists("d b")
    assert HadoopCatalog("ice", str(catalog.folder / "not there")).list_namespaces() == []


def test_versions_are_counted_as_java_counts_them(catalog: HadoopCatalog):
    """The first is 1; nothing is left beside them, and each says where the one before is."""
    put(catalog, p="1")
    put(catalog, q="2")
    put(catalog, q="2")
    found = catalog.load_table(TABLE)
    assert sorted(path.name for path in metadata(catalog).iterdir()) == [
        "v1.metadata.json",
        "v2.metadata.json",
        "v3.metadata.json",
        "version-hint.text",
    ]
    assert (metadata(catalog) / "version-hint.text").read_bytes() == b"3"
    assert found.metadata_location == f"{catalog.folder}/d b/s~~/t/metadata/v3.metadata.json"
    assert found.location() == f"{catalog.folder}/d b/s~~/t"
    assert found.properties == {"p": "1", "q": "2"}
    assert [version_of(one.metadata_file) for one in found.metadata.metadata_log] == [1, 2]
    assert (found.format_version, found.schema().fields[0].doc) == (2, "said")


@pytest.mark.parametrize("hint", ["1", "2", "x", "", None])
def test_the_newest_version_is_found_whatever_the_hint_says(catalog: HadoopCatalog, hint: str | None):
    """As by a writer that was killed between the version and the hint."""
    put(catalog, p="1")
    path = metadata(catalog) / "version-hint.text"
    path.unlink() if hint is None else path.write_text(hint)
    assert catalog.load_table(TABLE).properties == {"p": "1"}
    assert catalog.table_exists(TABLE)


def test_a_hint_of_a_version_that_is_gone_is_an_error(catalog: HadoopCatalog):
    """Nothing is guessed."""
    (metadata(catalog) / "version-hint.text").write_text("7")
    with pytest.raises(FileNotFoundError, match="lacks version 7"):
        catalog.load_table(TABLE)


def test_checksums_of_hadoop_are_not_held_against_new_content(catalog: HadoopCatalog):
    """Java reads a file only if its checksum, if there is one, is right."""
    for name in (".version-hint.text.crc", ".v2.metadata.json.crc", ".v1.metadata.json.crc"):
        (metadata(catalog) / name).write_bytes(b"old")
    put(catalog, p="1")
    assert [path.name for path in metadata(catalog).glob(".*")] == [".v1.metadata.json.crc"]


def test_compressed_versions_are_read_and_written(catalog: HadoopCatalog):
    """Under the name that Java has for them, and the one that it had."""
    put(catalog, **{"write.metadata.compression-codec": "gzip"})
    path = metadata(catalog) / "v2.gz.metadata.json"
    assert gzip.decompress(path.read_bytes()).startswith(b"{")
    assert catalog.load_table(TABLE).properties["p"] == "0"
    path.rename(metadata(catalog) / "v2.metadata.json.gz")
    put(catalog, p="1", **{"write.metadata.compression-codec": "none"})
    assert (metadata(catalog) / "v3.metadata.json").read_bytes().startswith(b"{")
    assert catalog.load_table(TABLE).properties["p"] == "1"


def test_a_version_is_never_replaced(catalog: HadoopCatalog):
    """Not even one that another codec, or a creation, has written."""
    first = (metadata(catalog) / "v1.metadata.json").read_bytes()
    with pytest.raises(TableAlreadyExistsError, match=r"ice\.d b\.s~~\.t"):
        catalog.create_table(TABLE, SCHEMA)
    table = catalog.load_table(TABLE)
    with pytest.raises(CommitFailedException, match=r"version 1 of .* is there"):
        catalog._put(TABLE, table.metadata, 1)
    (metadata(catalog) / "v2.gz.metadata.json").write_bytes(b"")
    with pytest.raises(CommitFailedException, match=r"version 2 of .* is there"):
        catalog._put(TABLE, table.metadata, 2)
    assert (metadata(catalog) / "v1.metadata.json").read_bytes() == first


@pytest.mark.slow
def test_of_writers_at_the_same_time_each_commit_stands(catalog: HadoopCatalog):
    """Four writers, each of which begins again when another one was faster."""
    refused: list[str] = []

    def write(writer: int) -> None:
        own = HadoopCatalog("ice", str(catalog.folder))
        for number in range(10):
            while True:
                try:
                    put(own, **{f"{writer}.{number}": "x"})
                    break
                except CommitFailedException as error:
                    refused.append(str(error))

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    found = catalog.load_table(TABLE)
    assert len(found.properties) == 41
    assert version_of(found.metadata_location) == 41
    assert sorted(version_of(path.name) for path in metadata(catalog).glob("v*.json")) == list(range(1, 42))


def test_what_is_not_met_is_refused(catalog: HadoopCatalog):
    """As in Java: another table under the name, and another place of the table or of its versions."""
    table = catalog.load_table(TABLE)
    strange = AssertTableUUID(uuid="00000000-0000-0000-0000-000000000000")
    with pytest.raises(CommitFailedException, match="UUID"):
        catalog.commit_table(table, (strange,), ())
    with pytest.raises(ValueError, match="cannot be anywhere else"):
        catalog.commit_table(table, (), (SetLocationUpdate(location="/elsewhere"),))
    with pytest.raises(ValueError, match="cannot be anywhere else"):
        put(catalog, **{"write.metadata.path": "/elsewhere"})
    with pytest.raises(ValueError, match="and so at"):
        catalog.create_table(("d b", "u"), SCHEMA, location="/elsewhere")
    for parts in (("d b", ".."), ("d b", "a/b"), ("", "t")):
        with pytest.raises(ValueError, match="no name of folders"):
            catalog.create_table(parts, SCHEMA)


def test_what_the_catalog_does_not_do_it_says(catalog: HadoopCatalog):
    """Tables are not removed or moved, and there are no views."""
    for call in (
        lambda: catalog.drop_table(TABLE),
        lambda: catalog.purge_table(TABLE),
        lambda: catalog.rename_table(TABLE, ("d b", "u")),
        lambda: catalog.drop_namespace("d b"),
        lambda: catalog.list_views("d b"),
        lambda: catalog.create_namespace("e", {"p": "v"}),
    ):
        with pytest.raises(NotImplementedError, match="created, read and changed, and nothing else"):
            call()
    assert catalog.table_exists(TABLE)


def test_addresses_of_folders_stay_addresses(tmp_path: Path):
    """In the metadata, as in Java; what is elsewhere is refused."""
    for address in (f"file:{tmp_path}/one/", f"file://{tmp_path}/two"):
        catalog = HadoopCatalog("ice", address)
        catalog.create_namespace("d")
        table = catalog.create_table("d.t", SCHEMA)
        assert table.location() == f"{address.rstrip('/')}/d/t"
        assert (catalog.folder / "d/t/metadata/v1.metadata.json").is_file()
        assert catalog.load_table("d.t") == table
    for address in ("s3://bucket/lake", "hdfs://host/lake", "file://host/lake"):
        with pytest.raises(ValueError, match="a folder on this machine"):
            HadoopCatalog("ice", address)
