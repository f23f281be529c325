"""Hadoop catalog: Iceberg tables in a warehouse folder, without a server, as Spark's catalogs of type `hadoop` have them.

A namespace is a folder, and a table a folder in it with a folder `metadata`. A version of the table is a file
`vN.metadata.json` there, which is put in place whole, and never replaced: who comes second has to begin again.
`version-hint.text` has a number that is at most that of the newest version, from which readers count on.

Source: Iceberg 1.11, `org.apache.iceberg.hadoop.HadoopCatalog` and `HadoopTableOperations`.
"""

from __future__ import annotations

import gzip
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn
from uuid import uuid4

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import update_table_metadata
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.schema import Schema
    from pyiceberg.table.update import TableRequirement, TableUpdate

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_FILE: Final = re.compile(r"file:(?://)?(?=/(?!/))")
_HINT: Final = "version-hint.text"
_VERSION: Final = re.compile(r"v([0-9]+)\.(?:gz\.)?metadata\.json(?:\.gz)?")
# What the file of a version is called, plain and compressed; the last one is of older releases.
_PLAIN, _GZIP, _OLDER_GZIP = "v{}.metadata.json", "v{}.gz.metadata.json", "v{}.metadata.json.gz"
_NAMES: Final = (_PLAIN, _GZIP, _OLDER_GZIP)
_GZIP_MAGIC: Final = b"\x1f\x8b"
_CODEC: Final = "write.metadata.compression-codec"
_METADATA_PATH: Final = "write.metadata.path"


def _refuse(self: HadoopCatalog, *args: object, **more: object) -> NoReturn:
    raise NotImplementedError(
        f"the Iceberg catalog {self.name} is a folder, in which tables are created, read and changed, and nothing else"
    )


class HadoopCatalog(MetastoreCatalog):
    """The tables of a local warehouse folder.

    * `name` (str): what the catalog is called.
    * `warehouse` (str): the folder, a path or an address such as `file:/lake`. Raises `ValueError` for one elsewhere.

    What is neither needed nor as in Java (to drop or rename tables, views, properties of namespaces) raises
    `NotImplementedError`.
    """

    def __init__(self, name: str, warehouse: str) -> None:
        found = _FILE.match(warehouse)
        if found is None and _SCHEME.match(warehouse):
            raise ValueError(f"the warehouse of a catalog of files is a folder on this machine, not {warehouse}")
        # As Java has it: an address stays one in the metadata.
        self._root = (warehouse if found else str(Path(warehouse).absolute())).rstrip("/")
        # The warehouse.
        self.folder = Path(warehouse[found.end() :] if found else warehouse).absolute()
        super().__init__(name, warehouse=self._root)

    def create_namespace(self, namespace: str | Identifier, properties: Properties = EMPTY_DICT) -> None:
        """Create the folder of a namespace, and those around it. Raises `NamespaceAlreadyExistsError`."""
        if properties:
            _refuse(self)
        if self.namespace_exists(namespace):
            raise NamespaceAlreadyExistsError(f"there is a namespace {self._shown(namespace)}")
        self._path(namespace).mkdir(parents=True, exist_ok=True)

    def namespace_exists(self, namespace: str | Identifier) -> bool:
        """Return whether there is a namespace: a folder that is not that of a table."""
        folder = self._path(namespace)
        return folder.is_dir() and not _is_table(folder)

    def load_namespace_properties(self, namespace: str | Identifier) -> Properties:
        """Return the properties of a namespace, its address. Raises `NoSuchNamespaceError`."""
        if not self.namespace_exists(namespace):
            raise NoSuchNamespaceError(f"there is no namespace {self._shown(namespace)}")
        return {"location": self._location(namespace)}

    def list_namespaces(self, namespace: str | Identifier = ()) -> list[Identifier]:
        """Return the namespaces in one, by default the outermost ones. Raises `NoSuchNamespaceError`."""
        return [one for one in self._inner(namespace) if self.namespace_exists(one)]

    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        """Return the tables in a namespace. Raises `NoSuchNamespaceError`."""
        return [one for one in self._inner(namespace) if _is_table(self._path(one))]

    def _inner(self, namespace: str | Identifier) -> list[Identifier]:
        parts, folder = self.identifier_to_tuple(namespace), self._path(namespace)
        if not folder.is_dir():
            if not parts:
                return []
            raise NoSuchNamespaceError(f"there is no namespace {self._shown(namespace)}")
        return [(*parts, one.name) for one in sorted(folder.iterdir()) if one.is_dir() and one.name[0] != "."]

    def table_exists(self, identifier: str | Identifier) -> bool:
        """Return whether there is a table: a folder with a version."""
        return _newest(self._path(identifier) / "metadata") > 0

    def load_table(self, identifier: str | Identifier) -> Table:
        """Return the newest version of a table. Raises `NoSuchTableError`."""
        metadata = self._path(identifier) / "metadata"
        version = _newest(metadata)
        if not version:
            raise NoSuchTableError(f"there is no table {self._shown(identifier)}")
        path = _file_of(metadata, version)
        if path is None:
            raise FileNotFoundError(f"{metadata} lacks version {version}, which {_HINT} names")
        content = path.read_bytes()
        text = gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content
        found = TableMetadataUtil.parse_raw(text.decode())
        return self._table(identifier, found, path.name)

    def _table(self, identifier: str | Identifier, metadata: TableMetadata, name: str) -> Table:
        return Table(
            identifier=self.identifier_to_tuple(identifier),
            metadata=metadata,
            metadata_location=f"{self._location(identifier)}/metadata/{name}",
            io=PyArrowFileIO({**self.properties, **metadata.properties}),
            catalog=self,
        )

    def create_table(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> Table:
        """Create a table, whose folder its name says. Raises `TableAlreadyExistsError`, also if another one came first."""
        place = self._location(identifier)
        if location is not None and location.rstrip("/") != place:
            raise ValueError(f"{self._shown(identifier)} is in a catalog of files, and so at {place}")
        if self.table_exists(identifier):
            raise TableAlreadyExistsError(f"there is a table {self._shown(identifier)}")
        metadata = new_table_metadata(
            schema=self._convert_schema_if_needed(schema),
            partition_spec=partition_spec,
            sort_order=sort_order,
            location=place,
            properties=dict(properties),
        )
        try:
            return self._put(identifier, metadata, 1)
        except CommitFailedException:
            raise TableAlreadyExistsError(f"there is a table {self._shown(identifier)}") from None

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Put the next version of a table in place. Raises `CommitFailedException` if another one came first."""
        identifier = table.name()
        current = self.load_table(identifier)
        for requirement in requirements:
            requirement.validate(current.metadata)
        changed = update_table_metadata(
            current.metadata, updates, enforce_validation=False, metadata_location=current.metadata_location
        )
        steady = ("last_updated_ms", "metadata_log")
        if changed.model_copy(update={one: getattr(current.metadata, one) for one in steady}) == current.metadata:
            return _response(current)
        if changed.location != current.metadata.location or _METADATA_PATH in changed.properties:
            raise ValueError(f"{self._shown(identifier)} is in a catalog of files, and cannot be anywhere else")
        return _response(self._put(identifier, changed, version_of(current.metadata_location) + 1))

    def _put(self, identifier: str | Identifier, metadata: TableMetadata, version: int) -> Table:
        folder = self._path(identifier) / "metadata"
        folder.mkdir(parents=True, exist_ok=True)
        content, name = metadata.model_dump_json(exclude_none=True).encode(), _PLAIN
        if metadata.properties.get(_CODEC, "none").lower() == "gzip":
            content, name = gzip.compress(content), _GZIP
        _link(content, folder / name.format(version))
        _hint(folder, version)
        return self._table(identifier, metadata, name.format(version))

    def _parts(self, identifier: str | Identifier) -> Identifier:
        parts = self.identifier_to_tuple(identifier)
        if any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts):
            raise ValueError(f"{self._shown(identifier)} is no name of folders")
        return parts

    def _path(self, identifier: str | Identifier) -> Path:
        return self.folder.joinpath(*self._parts(identifier))

    def _location(self, identifier: str | Identifier) -> str:
        return "/".join([self._root, *self._parts(identifier)])

    def _shown(self, identifier: str | Identifier) -> str:
        return ".".join([self.name, *self.identifier_to_tuple(identifier)])

    create_view: Any = _refuse
    drop_namespace: Any = _refuse
    drop_table: Any = _refuse
    drop_view: Any = _refuse
    list_views: Any = _refuse
    load_view: Any = _refuse
    purge_table: Any = _refuse
    register_table: Any = _refuse
    register_view: Any = _refuse
    rename_table: Any = _refuse
    update_namespace_properties: Any = _refuse
    view_exists: Any = _refuse
    create_table_transaction: Any = _refuse


def version_of(location: str) -> int:
    """Return the number of the version that the file at an address has.

    >>> version_of("file:/lake/shop/t/metadata/v12.gz.metadata.json")
    12
    """
    found = _VERSION.fullmatch(location.rpartition("/")[2])
    if found is None:
        raise ValueError(f"{location} is no version of a table in a catalog of files")
    return int(found[1])


def _response(table: Table) -> CommitTableResponse:
    return CommitTableResponse(metadata=table.metadata, **{"metadata-location": table.metadata_location})


def _is_table(folder: Path) -> bool:
    """Return whether a folder is that of a table, as Java says it: one that is created may not have a version yet."""
    metadata = folder / "metadata"
    return metadata.is_dir() and any(one.name.endswith(".metadata.json") for one in metadata.iterdir())


def _file_of(metadata: Path, version: int) -> Path | None:
    paths = [metadata / name.format(version) for name in _NAMES]
    return next((path for path in paths if path.exists()), None)


def _newest(metadata: Path) -> int:
    """Return the number of the newest version in a folder; 0 if there is none."""
    try:
        version = int((metadata / _HINT).read_text().partition("\n")[0])
    except (OSError, ValueError):
        names = [one.name for one in metadata.iterdir()] if metadata.is_dir() else []
        version = max((int(found[1]) for found in map(_VERSION.fullmatch, names) if found), default=0)
    while _file_of(metadata, version + 1) is not None:
        version += 1
    return version


def _link(content: bytes, path: Path) -> None:
    """Put a file in place, whole and on the disk. Raises `CommitFailedException` if there is one."""
    passing = path.parent / f".{uuid4()}.tmp"
    version = version_of(path.name)
    taken = CommitFailedException(f"version {version} of {path.parent.parent} is there already")
    if _file_of(path.parent, version) is not None:
        raise taken
    try:
        with passing.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _drop_checksum(path)
        path.hardlink_to(passing)
    except FileExistsError:
        raise taken from None
    finally:
        passing.unlink(missing_ok=True)
    _sync(path.parent)


def _hint(folder: Path, version: int) -> None:
    """Say which version is the newest; readers that find none, or an older one, look on by themselves."""
    passing = folder / f".{uuid4()}.tmp"
    with suppress(OSError):
        passing.write_text(str(version))
        _drop_checksum(folder / _HINT)
        passing.replace(folder / _HINT)


def _drop_checksum(path: Path) -> None:
    """Remove the checksum that Hadoop wrote beside a file, and would hold against another's content."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
