"""The log of a Delta table in a local folder: commits that `deltalake` has no call for, and the schema that it holds.

A commit is a file with the next number. It is written beside the log's files, and gets its name if no other writer
took it meanwhile: whoever reads the log sees the whole commit or none of it.

The schema is columns, properties and a protocol, as Spark writes them. Spark writes a step that changes them as a new
`metaData` action, and a `protocol` action if the table needs more of its readers. So does this, but all steps that belong
together are one commit.

Source: Delta Lake's protocol, "Delta Log Entries", "Add File and Remove File", "Change Metadata", "Protocol Evolution",
"Column Mapping", "Schema Serialization Format"; what Delta Lake 4.3.1 on Spark 4.1 writes.
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from cdcavro.errors import JobError, SchemaError, shown
from cdcavro.lake.escaped_names import OWN
from cdcavro.lake.evolution import ADD, DROP, MARK, RENAME, WIDEN, LakeColumn
from cdcavro.lake.lake_columns import split_parts
from cdcavro.lake.lakes import SCHEME
from cdcavro.lake.table_shape import check_partitioned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deltalake import DeltaTable

    from cdcavro.lake.evolution import Step
    from cdcavro.lake.table_shape import Partition


# What a commit and a checkpoint of a version begin with.
_COMMIT: Final = re.compile(r"[0-9]{20}\.")


class TakenError(Exception):
    """Another writer has committed under the number of a commit."""


def local_path(folder: str) -> str | None:
    """Return the path of a folder on this machine; None for one in an object store."""
    if not SCHEME.match(folder):
        return folder
    parts = urlsplit(folder)
    return unquote(parts.path) if parts.scheme == "file" and not parts.netloc else None


def log_folder(folder: str) -> Path:
    """Return the folder of a table's log."""
    return Path(folder, "_delta_log")


def has_log(folder: str) -> bool:
    """Return whether a folder is that of a Delta table."""
    try:
        return any(is_commit(one.name) for one in os.scandir(log_folder(folder)))
    except (FileNotFoundError, NotADirectoryError):
        return False


def newest_version(folder: str) -> int | None:
    """Return the number of the newest version of a table, -1 if there is no table; None for one in an object store."""
    local = local_path(folder)
    if local is None:
        return None
    log = log_folder(local)
    try:
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            # A log may have the commits of a month, which take as long to list as a batch to write.
            stated = version = int(json.loads((log / "_last_checkpoint").read_bytes())["version"])
            while (log / f"{version + 1:020}.json").exists():
                version += 1
            # It may be older than all that was not cleaned up, or newer than what is there.
            if version > stated:
                return version
        names = [one.name for one in os.scandir(log)]
    except (FileNotFoundError, NotADirectoryError):
        return -1
    except OSError:
        return None
    return max((int(name[:20]) for name in names if _COMMIT.match(name)), default=-1)


def is_commit(name: str) -> bool:
    """Return whether a file of a log with such a name is seen by readers."""
    return not name.startswith((".", "_")) or name == "_last_checkpoint"


def commit(folder: str, version: int, operation: str, actions: Sequence[Mapping[str, Any]]) -> None:
    """Write the commit that makes a version of a table.

    Raises `TakenError` if there is one, and `JobError` if the file system has no hard links.
    """
    log = log_folder(folder)
    log.mkdir(parents=True, exist_ok=True)
    said = {
        "timestamp": int(time.time() * 1000),
        "operation": operation,
        "operationParameters": {},
        **({"readVersion": version - 1} if version else {}),
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": {},
        "engineInfo": "cdcavro",
        "txnId": str(uuid4()),
    }
    lines = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in ({"commitInfo": said}, *actions)]
    scratch = log / f".{uuid4().hex}.tmp"
    try:
        _write(scratch, "\n".join(lines) + "\n")
        _name(scratch, log / f"{version:020}.json")
        _sync_folder(log)
    finally:
        scratch.unlink(missing_ok=True)


def _write(file: Path, text: str) -> None:
    with file.open("x", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def _name(scratch: Path, file: Path) -> None:
    """Give a file a name that nothing has yet. Raises `TakenError` and `JobError`."""
    try:
        os.link(scratch, file)
    except FileExistsError:
        raise TakenError(f"{file.name} is there") from None
    except OSError as error:
        raise JobError(
            f"{file}: a name cannot be given to a commit at once, which takes hard links: {error}"
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder outlast a loss of power, where the system can do that."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


COMMENT: Final = "comment"
ID: Final = "delta.columnMapping.id"
PHYSICAL: Final = "delta.columnMapping.physicalName"
TYPE_CHANGES: Final = "delta.typeChanges"
MODE: Final = "delta.columnMapping.mode"
WIDENING: Final = "delta.enableTypeWidening"
_LAST_ID: Final = "delta.columnMapping.maxColumnId"
_NAMES: Final = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_SPELLED: Final = {name: spark for spark, name in _NAMES.items()}
_NESTED: Final = re.compile(r"(array|map|struct)<(.*)>", re.DOTALL)
MAPPING_FEATURE: Final = "columnMapping"
WIDENING_FEATURE: Final = "typeWidening"
DELETION_VECTORS: Final = "deletionVectors"
# A property that Spark does not keep: it switches a feature on.
_FEATURE: Final = "delta.feature."
_LOCAL_TIMES: Final = "timestampNtz"
_USUAL: Final = ("invariants", "appendOnly")
# What a protocol of an older kind implies that a writer of tables with named features must name.
_IMPLIED: Final = {
    2: _USUAL,
    3: (*_USUAL, "checkConstraints"),
    4: (*_USUAL, "checkConstraints", "changeDataFeed", "generatedColumns"),
    5: (*_USUAL, "checkConstraints", "changeDataFeed", "generatedColumns", MAPPING_FEATURE),
    6: (*_USUAL, "checkConstraints", "changeDataFeed", "generatedColumns", MAPPING_FEATURE, "identityColumns"),
}
# With these, a commit that changes columns only is written as without them.
KNOWN_FEATURES: Final = frozenset(
    {*_IMPLIED[5], _LOCAL_TIMES, WIDENING_FEATURE, DELETION_VECTORS, "v2Checkpoint", "vacuumProtocolCheck"}
    | {"domainMetadata", "clustering"}
)
# In the name of a folder: `deltalake` 1.6 takes what is before a colon for the scheme of an address, and refuses `/../`.
_UNFIT_NAME: Final = re.compile("[:/]")
_NAMED: Final = 7


@dataclass(frozen=True)
class Protocol:
    """What a table needs of its readers and writers."""

    reader: int = 1
    writer: int = 2
    # Named from reader version 3 and writer version 7 on.
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()

    def with_features(self, features: Sequence[str]) -> Protocol:
        """Return the protocol of a table that needs features of its readers and writers, too."""
        held = self.writer_features if self.writer >= _NAMED else _IMPLIED.get(self.writer, ())
        missing = [one for one in features if one not in held]
        if not missing:
            return self
        writers = tuple(dict.fromkeys([*missing, *held]))
        # Readers of version 2 know the mapping of columns without its name.
        was_mapped = self.reader == 2  # noqa: PLR2004
        if self.reader < 3 and set(missing) == {MAPPING_FEATURE}:  # noqa: PLR2004
            return Protocol(2, _NAMED, (), writers)
        readers = (*self.reader_features, *([MAPPING_FEATURE] if was_mapped else []), *missing)
        return Protocol(3, _NAMED, tuple(dict.fromkeys(readers)), writers)

    def without(self, feature: str) -> Protocol:
        """Return the protocol without a feature."""
        left = [tuple(one for one in names if one != feature) for names in (self.reader_features, self.writer_features)]
        return replace(self, reader_features=left[0], writer_features=left[1])

    def action(self) -> dict[str, Any]:
        """Return the action of the log that states it."""
        stated: dict[str, Any] = {"minReaderVersion": self.reader, "minWriterVersion": self.writer}
        if self.reader >= 3:  # noqa: PLR2004
            stated["readerFeatures"] = list(self.reader_features)
        if self.writer >= _NAMED:
            stated["writerFeatures"] = list(self.writer_features)
        return {"protocol": stated}


@dataclass(frozen=True)
class DeltaSchema:
    """What the log of a Delta table says of the table at a version.

    * `fields` (list of dict): the columns, as the JSON of the log has them.
    * `properties` (dict of str)
    * `protocol` (Protocol)
    * `facts` (dict): the rest of the `metaData` action, such as `id`.
    * `partition` (tuple of str): the columns by which files are partitioned, which these do not have.
    """

    fields: list[dict[str, Any]]
    properties: dict[str, str]
    protocol: Protocol = Protocol()
    facts: dict[str, Any] = field(default_factory=dict)
    partition: tuple[str, ...] = ()

    @property
    def is_mapped(self) -> bool:
        """Whether columns have other names in files."""
        return self.properties.get(MODE, "none") != "none"

    @property
    def is_widened(self) -> bool:
        """Whether files may have narrower types than the table: `deltalake` does not read such a table."""
        return WIDENING_FEATURE in self.protocol.writer_features

    def columns(self) -> list[LakeColumn]:
        """Return the columns, without this project's own."""
        return [
            LakeColumn(one["name"], one["metadata"].get(COMMENT, ""), spark_spelling(one["type"]))
            for one in self.fields
            if not one["name"].startswith(OWN)
        ]

    def physical(self, name: str) -> str:
        """Return the name of a column in files."""
        return next(str(one["metadata"].get(PHYSICAL, name)) for one in self.fields if one["name"] == name)

    def text(self) -> str:
        """Return the JSON of the columns."""
        return json.dumps({"type": "struct", "fields": self.fields}, ensure_ascii=False, separators=(",", ":"))

    def actions(self, before: DeltaSchema | None) -> list[dict[str, Any]]:
        """Return the actions of the log that make the table so."""
        stated = {**self.facts, "schemaString": self.text(), "partitionColumns": [*self.partition]}
        stated["configuration"] = self.properties
        is_same = before is not None and before.protocol == self.protocol
        return [{"metaData": stated}, *([] if is_same else [self.protocol.action()])]

    def with_properties(self, properties: Mapping[str, str]) -> DeltaSchema:
        """Return it with properties set; a mapping of columns that is switched on keeps the names in files."""
        kept = {name: value for name, value in properties.items() if not name.startswith(_FEATURE)}
        made = replace(self, properties=self.properties | kept)
        if made.is_mapped and not self.is_mapped:
            return made.with_ids(made.fields, str, 0).with_needed_features()
        return made.with_needed_features()

    def with_ids(self, fields: list[dict[str, Any]], physical: Callable[[str], str], last: int) -> DeltaSchema:
        """Return it with fields that have numbers from a last one on, and names in files."""
        numbered = _Numbering(last, physical)
        fields = [numbered.field(one) for one in fields]
        return replace(self, fields=fields, properties=self.properties | {_LAST_ID: str(numbered.last)})

    def with_needed_features(self) -> DeltaSchema:
        """Return it with what its readers and writers need to know."""
        features = [_LOCAL_TIMES] if '"timestamp_ntz"' in json.dumps([one["type"] for one in self.fields]) else []
        features += [MAPPING_FEATURE] if self.is_mapped else []
        return replace(self, protocol=self.protocol.with_features(features))

    def with_step(self, step: Step, *, is_rewritten: bool = False) -> DeltaSchema:
        """Return it after a step; a column that is widened must be so in all files. Raises `SchemaError`.

        With `is_rewritten`, all files are written anew, so that columns are renamed and dropped in them, too.
        """
        at = next((i for i, one in enumerate(self.fields) if one["name"] == step.name), None)
        if step.kind == ADD:
            return self._with_column(step)
        if at is None:
            raise SchemaError(step.name, f"there is no column {shown(step.name)}")
        one = self.fields[at]
        if step.kind in (RENAME, DROP) and not self.is_mapped and not is_rewritten:
            raise SchemaError(step.name, f"{step} only if {MODE} is name")
        check_partitioned([step], self.partition)
        changed = {
            RENAME: lambda: one | {"name": step.column.name},
            MARK: lambda: one | {"metadata": one["metadata"] | {COMMENT: step.column.field}},
            WIDEN: lambda: _as_narrow(one) | {"type": delta_type(step.column.type)},
        }
        changes = [] if step.kind == DROP else [changed[step.kind]()]
        partition = tuple(changes[0]["name"] if name == step.name else name for name in self.partition)
        made = replace(self, fields=[*self.fields[:at], *changes, *self.fields[at + 1 :]], partition=partition)
        if partition != self.partition:
            check_folders(made)
        return made

    def _with_column(self, step: Step) -> DeltaSchema:
        column, names = step.column, [one["name"] for one in self.fields]
        new = _field(column.name, column.type, column.field)
        if column.name.casefold() in {name.casefold() for name in names}:
            raise SchemaError(column.name, f"there is a column {shown(column.name)} already")
        if step.after and step.after not in names:
            raise SchemaError(step.after, f"there is no column {shown(step.after)}")
        properties = self.properties
        if self.is_mapped:
            numbered = _Numbering(int(properties.get(_LAST_ID, "0")), _new_name)
            new, properties = numbered.field(new), properties | {_LAST_ID: str(numbered.last)}
        at = len(names) if step.after is None else names.index(step.after) + 1 if step.after else 0
        fields = [*self.fields[:at], new, *self.fields[at:]]
        return replace(self, fields=fields, properties=properties).with_needed_features()

    def as_rewritten(self) -> DeltaSchema:
        """Return it for a table all of whose files have the types of the table: nothing is widened while it is read."""
        properties = {name: value for name, value in self.properties.items() if name != WIDENING}
        protocol = self.protocol.without(WIDENING_FEATURE)
        return replace(self, fields=[_as_narrow(one) for one in self.fields], properties=properties, protocol=protocol)


def new_schema(
    columns: Sequence[LakeColumn],
    own: Mapping[str, str],
    properties: Mapping[str, str],
    partition: Sequence[Partition] = (),
) -> DeltaSchema:
    """Return the schema of a new table. Raises `SchemaError` as `check_folders` does."""
    fields = [_field(one.name, one.type, one.field) for one in columns]
    fields += [_field(name, spark, None) for name, spark in own.items()]
    now = int(time.time() * 1000)
    facts = {"id": str(uuid4()), "format": {"provider": "parquet", "options": {}}, "createdTime": now}
    made = DeltaSchema(fields, dict(properties), Protocol(), facts, tuple(one.column for one in partition))
    mapped = made.with_ids(fields, _new_name, 0) if made.is_mapped else made
    check_folders(mapped)
    return mapped.with_needed_features()


def check_folders(schema: DeltaSchema) -> None:
    """Raise `SchemaError` for a partition whose folders `deltalake` would not find again."""
    odd = None if schema.is_mapped else next((name for name in schema.partition if _UNFIT_NAME.search(name)), None)
    if odd is not None:
        reason = "partitions a table, and deltalake has no folders with such a name: run this batch on Spark"
        raise SchemaError(shown(odd), f"{reason}, or leave the column out of partition")


def schema_of(table: DeltaTable) -> DeltaSchema:
    """Return the schema of a table that `deltalake` has opened."""
    said, needed = table.metadata(), table.protocol()
    facts = {"id": str(said.id), "name": said.name, "description": said.description, "createdTime": said.created_time}
    facts = {name: value for name, value in facts.items() if value is not None}
    return DeltaSchema(
        json.loads(table.schema().to_json())["fields"],
        dict(said.configuration),
        Protocol(
            needed.min_reader_version,
            needed.min_writer_version,
            tuple(needed.reader_features or ()),
            tuple(needed.writer_features or ()),
        ),
        facts | {"format": {"provider": "parquet", "options": {}}},
        tuple(said.partition_columns),
    )


class _Numbering:
    """Gives fields, those within others among them, numbers from a last one on, and names in files."""

    def __init__(self, last: int, physical: Callable[[str], str]) -> None:
        self.last = last
        self._physical = physical

    def field(self, one: Mapping[str, Any]) -> dict[str, Any]:
        """Return a field with its number, those within it behind it."""
        self.last += 1
        mapped = {ID: self.last, PHYSICAL: self._physical(one["name"])}
        return {**one, "metadata": {**one["metadata"], **mapped}, "type": self._type(one["type"])}

    def _type(self, declared: Any) -> Any:
        if not isinstance(declared, dict):
            return declared
        if declared["type"] == "struct":
            return declared | {"fields": [self.field(one) for one in declared["fields"]]}
        inner = ("elementType", "keyType", "valueType")
        return declared | {name: self._type(declared[name]) for name in inner if name in declared}


def _new_name(name: str) -> str:  # noqa: ARG001  a name in files says nothing of the column's
    return f"col-{uuid4()}"


def _field(name: str, spark: str, comment: str | None) -> dict[str, Any]:
    metadata = {} if comment is None else {COMMENT: comment}
    return {"name": name, "type": delta_type(spark), "nullable": True, "metadata": metadata}


def _as_narrow(one: dict[str, Any]) -> dict[str, Any]:
    return one | {"metadata": {name: value for name, value in one["metadata"].items() if name != TYPE_CHANGES}}


def delta_type(spark: str) -> Any:
    """Return a type as the log of a Delta table has it, given as Spark spells it.

    >>> delta_type("map<string,int>")["valueType"]
    'integer'
    """
    nested = _NESTED.fullmatch(spark)
    if nested is None:
        return _NAMES.get(spark, spark)
    match nested[1], split_parts(nested[2]):
        case "array", [items]:
            return {"type": "array", "elementType": delta_type(items), "containsNull": True}
        case "map", [keys, values]:
            parts = {"keyType": delta_type(keys), "valueType": delta_type(values)}
            return {"type": "map", **parts, "valueContainsNull": True}
        case "struct", parts:
            named = [part.partition(":") for part in parts]
            return {"type": "struct", "fields": [_field(name, inner, None) for name, _, inner in named]}
    raise SchemaError(spark, f"{shown(spark)} is no type of a lake's column")


def spark_spelling(declared: Any) -> str:
    """Return how Spark spells a type of the log of a Delta table.

    >>> spark_spelling({"type": "array", "elementType": "long", "containsNull": True})
    'array<bigint>'
    """
    match declared:
        case str():
            return _SPELLED.get(declared, declared)
        case {"type": "array", "elementType": items}:
            return f"array<{spark_spelling(items)}>"
        case {"type": "map", "keyType": keys, "valueType": values}:
            return f"map<{spark_spelling(keys)},{spark_spelling(values)}>"
        case {"type": "struct", "fields": fields}:
            parts = [f"{one['name']}:{spark_spelling(one['type'])}" for one in fields]
            return f"struct<{','.join(parts)}>"
    raise SchemaError(shown(declared), "is no type of a lake's column")
