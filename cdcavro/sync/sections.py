"""The sections of a pipeline's configuration, and what each makes of its settings."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct, field

from cdcavro.change.operations import USUAL_MODES, check_modes
from cdcavro.errors import FileError, RegistryError, shown
from cdcavro.exact.instants import find_zone
from cdcavro.formats.connect_columns import PLACEHOLDER
from cdcavro.lake.catalogs import check_catalog, check_metastore
from cdcavro.lake.escaped_names import TABLE_NAME, check_name_template
from cdcavro.lake.evolution import BEHAVIORS, LENIENT
from cdcavro.lake.lakes import CURRENT, DeltaLake, IcebergLake, check_form_name
from cdcavro.lake.sql_statements import check_change_columns
from cdcavro.lake.table_shape import NO_SHAPE, TableShape
from cdcavro.registry.client import TIMEOUT
from cdcavro.registry.framing import CONFLUENT
from cdcavro.sync.outputs.sink_settings import (
    AvroFiles,
    KafkaTopics,
    LakeSettings,
    StatementRules,
    TableForms,
    excluded_kinds,
)
from cdcavro.sync.protection import RowRule
from cdcavro.sync.secrets import check_addresses, hide_secrets, safe_repr
from cdcavro.sync.settings import RegistrySettings
from cdcavro.sync.sources import Files, Kafka, check_most
from cdcavro.table.columns.column_type import TypeOverrides
from cdcavro.table.tables import KEEP, UNSTATED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.registry.subjects import Strategy


# The readers of lake tables, as `LakeConfig.readers` names them.
_ALL: Final = "all"


def check_at_least_one(**settings: int | None) -> None:
    """Raise `ValueError` for a setting below 1."""
    for name, value in settings.items():
        if value is not None and value < 1:
            raise ValueError(f"{name} is at least 1, not {value}")


def check_words(**settings: Sequence[str]) -> None:
    """Raise `ValueError` for a setting with an empty text among others."""
    for name, words in settings.items():
        if not all(words):
            raise ValueError(f"{name} has an empty text: leave it out")


class LakeConfig(Struct, forbid_unknown_fields=True):
    """Lake tables, one or two for each table of the database. Set either `delta` or `iceberg`.

    * `delta`: the folder or address of Delta Lake tables.
    * `iceberg`: the name of an Iceberg catalog.
    * `warehouse`: the folder of an Iceberg catalog of files.
    * `current`: whether the current state of a table is kept. It lacks whatever was read without it, so a pipeline that
      began without current states never gets them.
    * `changelog`: whether each change is appended to a second table.
    * `behavior`: how lake tables follow statements: `exception`, `evolve`, `try_evolve`, `lenient` or `ignore`.
    * `form`: the form of current states: `current`, `soft`, which keeps deleted rows, or `history`, which keeps all versions.
    * `guard_days`: how many days a delete is guarded against late changes of its key.
    * `parallel`: how many tables are written at a time; without Spark fewer, if their rows take more than 12 MiB each on
      average.
    * `adopt`: whether lake tables of another pipeline are taken over.
    * `native`: whether Spark's driver writes small batches itself.
    * `catalog`: the properties of an Iceberg catalog that is a server or a database, as pyiceberg names them, or of the
      metastore in which Delta Lake tables also have names; their values are not shown.
    * `name`: what tables are called in the lake, made of `{database}`, `{schema}` and `{table}`; by default as in the source.
    * `change_columns`: which columns about the change of a row lake tables have: `time`, `transaction`, `source`,
      `connector`, `topic`, `partition`, `offset`, `file`, `line`, `headers`.
    * `include_statements`: the kinds of statements that lake tables follow, by default all: `add.column`, `drop.column`,
      `rename.column`, `alter.column.type`, `truncate.table` and `drop.table`, or a word of them, such as `column`.
    * `exclude_statements`: the kinds of statements that they do not follow.
    * `complete_minutes`: every how many minutes `cdcavro.complete_until` is set in lake tables that get rows.
    * `readers`: with `all`, tables of Delta Lake never use column mapping or type widening, which polars refuses and
      pyarrow reads wrongly: if a column is renamed, widened or dropped, all files of the table are rewritten instead. By
      default a table uses them once a statement needs them. Tables of Iceberg never do.
    """

    delta: str | None = None
    iceberg: str | None = None
    warehouse: str | None = None
    current: bool = True
    changelog: bool = False
    behavior: str = LENIENT
    form: str = CURRENT
    guard_days: float = 7
    parallel: int = 4
    adopt: bool = False
    # Whether Spark's driver writes small batches itself.
    native: bool = True
    catalog: dict[str, str] = {}
    name: str | None = None
    change_columns: list[str] = []
    include_statements: list[str] | None = None
    exclude_statements: list[str] = []
    complete_minutes: float = 10
    readers: str | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address with a password, a template that names no tables, and unknown words."""
        check_change_columns(self.change_columns)
        check_form_name(self.form)
        _ = self.excluded
        if self.readers not in (None, _ALL):
            raise ValueError(f'readers is "{_ALL}", or not stated, not {shown(self.readers)}')
        check_addresses({"delta": self.delta, "iceberg": self.iceberg, "warehouse": self.warehouse})
        check_at_least_one(parallel=self.parallel)
        if self.catalog:
            self.catalog = hide_secrets(self.catalog, "lake.catalog")
            (check_metastore if self.delta is not None and self.iceberg is None else check_catalog)(self.catalog)
        if self.name is not None:
            check_name_template(self.name)

    def __repr__(self) -> str:
        return safe_repr(self, "catalog")

    @property
    def excluded(self) -> frozenset[str]:
        """The kinds of statements that lake tables do not follow."""
        return excluded_kinds(self.include_statements, self.exclude_statements)

    def sink(self, file: str, tables: Sequence[TableConfig] = ()) -> LakeSettings:
        """Return the lake that is configured, with what is said of tables. Raises `FileError`, which names the file."""
        if (self.delta is None) == (self.iceberg is None):
            raise FileError(file, "either delta or iceberg in [lake]", "none" if self.delta is None else "both")
        if self.behavior not in BEHAVIORS:
            raise FileError(file, f"{', '.join(BEHAVIORS)} as behavior in [lake]", shown(self.behavior))
        forms = TableForms(self.form, tuple((one.match, one.form) for one in tables if one.form is not None))
        if forms.kept is not None and not self.current:
            raise FileError(file, f"current = true in [lake] for form = {shown(forms.kept)}", "false")
        if not (self.current or self.changelog):
            raise FileError(file, "current or changelog in [lake]", "neither")
        if self.catalog and self.warehouse is not None:
            got = "warehouse, which is the folder of a catalog of files"
            raise FileError(file, "no other place of tables beside catalog in [lake]", got)
        if self.delta is not None and self.warehouse is not None:
            raise FileError(file, "iceberg in [lake] for warehouse, the folder of its tables", "delta")
        is_readable = self.readers == _ALL
        lake = IcebergLake(self.iceberg or "") if self.delta is None else DeltaLake(self.delta, is_readable=is_readable)
        try:
            guard = timedelta(days=self.guard_days)
        except (ValueError, OverflowError) as error:
            raise FileError(file, "a number of days as guard_days in [lake]", shown(self.guard_days)) from error
        if guard < timedelta():
            raise FileError(file, "a number of days as guard_days in [lake]", shown(self.guard_days))
        if not self.complete_minutes >= 0:
            expected = "a number of minutes as complete_minutes in [lake]"
            raise FileError(file, expected, shown(self.complete_minutes))
        return LakeSettings(
            lake,
            is_current=self.current,
            is_changelog=self.changelog,
            behavior=self.behavior,
            guard=guard,
            parallel=self.parallel,
            is_adopting=self.adopt,
            warehouse=self.warehouse,
            is_native=self.native,
            catalog=self.catalog,
            template=self.name,
            change_columns=tuple(self.change_columns),
            statements=StatementRules(
                self.excluded, tuple((one.match, one.excluded) for one in tables if one.is_about_statements)
            ),
            form=self.form,
            complete_minutes=self.complete_minutes,
            table_forms=forms.tables,
        )


class KafkaConfig(Struct, forbid_unknown_fields=True):
    """Topics of Kafka, instead of a lake; they need a registry.

    * `servers`: `host:port` of some brokers, separated by commas.
    * `topic`: the name of a table's topic; `{name}` is the table. Without it, all tables share a topic.
    * `options`: options of Spark's Kafka sink; their values are not shown.
    * `shards`: the rule that chooses the partition, as `cdcavro.shard` does: `blob` or `tuple`, by default Kafka's own.
    * `tombstones`: whether a tombstone follows a delete, as a compacted topic needs it.
    * `truncates`: whether a TRUNCATE is a record. It has no key, which a compacted topic does not accept.
    * `partitions`: how many partitions a new topic has, by default the brokers' setting.
    * `replication`: how many replicas a new topic has, by default the brokers' setting.
    * `parallel`: how many tables are written at a time.
    * `connect`: whether values and keys are Debezium's Avro, for consumers with Kafka Connect's converter.
    * `headers`: whether a record has the headers of the Kafka record that it comes from, as JSON in `cdcavro.headers`.
    """

    servers: str
    topic: str = TABLE_NAME
    options: dict[str, str] = {}
    shards: str | None = None
    tombstones: bool = True
    truncates: bool = True
    partitions: int | None = None
    replication: int | None = None
    parallel: int = 4
    connect: bool = False
    headers: bool = False

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address with a password, and for numbers below 1."""
        check_addresses({"kafka": self.servers})
        check_at_least_one(parallel=self.parallel, partitions=self.partitions, replication=self.replication)

    def __repr__(self) -> str:
        return safe_repr(self, "options")

    def sink(self, file: str) -> KafkaTopics:
        """Return the topics that are configured. Raises `FileError`, which names the file."""
        flags = {"connect": "is_connect", "headers": "has_headers"}
        settings = {flags.get(name, name): getattr(self, name) for name in self.__struct_fields__}
        try:
            return KafkaTopics(**settings)
        except ValueError as error:
            raise FileError(file, "topics in [kafka]", str(error)) from error


class AvroConfig(Struct, forbid_unknown_fields=True):
    """Avro files, instead of a lake.

    * `folder`: a folder that no other pipeline writes to.
    * `codec`: `deflate` or `null`.
    * `parallel`: how many tables are written at a time.
    * `plain`: whether records are flat, so that every Avro reader reads them.
    * `headers`: whether a record has the headers of the Kafka record that it comes from, as JSON in `_cdc_headers`.
    """

    folder: str
    codec: str = "deflate"
    parallel: int = 4
    plain: bool = False
    headers: bool = False

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address with a password, and for a number below 1."""
        check_addresses({"folder": self.folder})
        check_at_least_one(parallel=self.parallel)

    def sink(self, file: str) -> AvroFiles:
        """Return the files that are configured. Raises `FileError`, which names the file."""
        try:
            return AvroFiles(self.folder, self.codec, self.parallel, self.plain, self.headers)
        except ValueError as error:
            raise FileError(file, "Avro files in [avro]", str(error)) from error


class RegistryConfig(Struct, forbid_unknown_fields=True):
    """A registry in which the schemas of tables are published.

    * `url`: a server with Confluent's REST API, or `file:FOLDER`.
    * `strategy`: how subjects are named: `topic`, `record` or `topic-record`.
    * `topic`: the topic that subjects are named after; `{name}` is the table.
    * `compatibility`: the compatibility level to set for each subject; by default, the subject's own or the registry's applies.
    * `user`: the user name; by default that in `CDCAVRO_REGISTRY_USER`.
    * `password`: the password; by default that in `CDCAVRO_REGISTRY_PASSWORD`.
    * `ca`: the file with the certificate of the authority that signed the server's certificate.
    * `certificate`: the file with the client certificate.
    * `key`: the file with that certificate's key.
    * `timeout`: how many seconds one request may take.
    * `patience`: how many seconds the registry may be down or too busy before the pipeline stops.
    """

    url: str
    strategy: str | None = None
    topic: str | None = None
    compatibility: str | None = None
    user: str | None = None
    password: str | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    timeout: float = TIMEOUT
    patience: float = 60

    def __repr__(self) -> str:
        return f"RegistryConfig(strategy={self.strategy!r}, ...)"

    def settings(self, file: str, section: str, framing: str = CONFLUENT) -> RegistrySettings:
        """Return the registry that is configured in a section. Raises `FileError`, which names the file."""
        auth = (self.user or "", self.password or "") if self.user or self.password else None
        # It is checked there.
        strategy: Strategy | None = self.strategy  # type: ignore[assignment]
        named = strategy, self.topic, self.compatibility
        try:
            return RegistrySettings(
                self.url, *named, auth, self.ca, self.certificate, self.key, self.timeout, self.patience, framing
            )
        except (ValueError, RegistryError) as error:
            raise FileError(file, f"a registry in [{section}]", str(error)) from error


class SourceConfig(Struct, forbid_unknown_fields=True):
    """Where messages come from. Set either `kafka`, with `topics` or `pattern`, or `files`.

    * `kafka`: `host:port` of some brokers, separated by commas.
    * `topics`: the names of topics.
    * `pattern`: a regular expression that the names of topics match.
    * `options`: options of Spark's source of Kafka; their values are not shown.
    * `files`: a file, a folder, or a pattern of paths.
    * `most`: how many messages, or files, a batch has at most.
    * `framed`: whether values are payloads prefixed with the id of their schema in a registry, or how they are framed.
    * `registry`: the registry of framed payloads, with the settings of `[registry]`; by default that one.
    """

    kafka: str | None = None
    topics: list[str] = []
    pattern: str | None = None
    options: dict[str, str] = {}
    files: str | None = None
    most: int | None = None
    framed: bool | str = False
    registry: RegistryConfig | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address with a password, and for a batch without messages."""
        check_most(self.most)
        check_addresses({"kafka": self.kafka, "files": self.files})
        check_words(topics=self.topics)

    def __repr__(self) -> str:
        return safe_repr(self, "options")

    def source(self, file: str) -> Kafka | Files:
        """Return the source that is configured. Raises `FileError`, which names the file."""
        if (self.kafka is None) == (self.files is None):
            raise FileError(file, "either kafka or files in [source]", "none" if self.kafka is None else "both")
        of_kafka = [name for name in ("topics", "pattern", "options") if getattr(self, name)]
        if self.files is not None and of_kafka:
            raise FileError(
                file, "either files or kafka in [source]", f"files and {', '.join(of_kafka)}, which are of kafka"
            )
        try:
            if self.files is not None:
                return Files(self.files, self.most)
            return Kafka(self.kafka or "", tuple(self.topics), self.pattern, self.options, self.most)
        except ValueError as error:
            raise FileError(file, "a source", str(error)) from error


class TablesConfig(Struct, forbid_unknown_fields=True):
    """Which tables are wanted, and how their values are read, as in `cdcavro tables`.

    * `include`: patterns of table names, one of which must match.
    * `exclude`: patterns of table names, none of which may match.
    * `table`: the table of rows whose message names none.
    * `zone`: the time zone of times without one.
    * `types`: the types of columns, by table and column, where messages state none or instead of those they state.
    * `on_misfit`: what becomes of a value that its column's type cannot hold: `keep`, `error` or `reject`.
    * `absent`: what a column missing from a row is: `unstated`, which leaves it as it was, or `null`.
    * `decimals`: how Debezium sends decimals, its `decimal.handling.mode`; by default `precise`.
    * `times`: how Debezium sends times, its `time.precision.mode`; by default `adaptive_time_microseconds`.
    * `binaries`: how Debezium sends binary values, its `binary.handling.mode`; by default `bytes`.
    * `unavailable`: the placeholder for a value that the source did not provide; with an empty text there is none.
    """

    include: list[str] = []
    exclude: list[str] = []
    table: str | None = None
    zone: str | None = None
    types: dict[str, dict[str, str]] = {}
    on_misfit: str = KEEP
    absent: str = UNSTATED
    decimals: str | None = None
    times: str | None = None
    binaries: str | None = None
    unavailable: str = PLACEHOLDER

    def __post_init__(self) -> None:
        """Raise `ValueError` for a mode of a connector that is not known, and for a pattern that fits nothing."""
        check_words(include=self.include, exclude=self.exclude)
        usual = USUAL_MODES
        check_modes(self.decimals or usual.decimals, self.times or usual.times, self.binaries or usual.binaries)

    def options(self, file: str) -> Any:
        """Return the arguments of `Tables`. Raises `FileError`, which names the file."""
        try:
            zone = None if self.zone is None else find_zone(self.zone)
        except ValueError as error:
            got = str(error).removeprefix("no time zone is called ")
            raise FileError(file, "the name of a time zone as zone in [tables]", got) from error
        given = TypeOverrides.from_mapping(self.types, file=f"{file}: [tables.types]")
        stated = {name: getattr(self, name) for name in ("table", "decimals", "times", "binaries")}
        options = {name: value for name, value in stated.items() if value is not None}
        return {"given": given, "zone": zone, "on_misfit": self.on_misfit, "absent": self.absent, **options}


class TableConfig(RowRule, frozen=True, forbid_unknown_fields=True):
    """Rules for some tables: for their rows, their shape, and the statements that they follow.

    If several such sections match a table, each aspect comes from the first section that sets it: rows (`leave_out`,
    `mask`, `where`), the shape (`key`, `partition`, `cluster`, `properties`), statements, and the form. Names of
    columns match regardless of case. Raises `ValueError`.

    * `key`: the columns of the key, for a table whose source states none; the table then has a current state.
    * `properties`: properties of the lake tables of a table, such as `delta.logRetentionDuration`.
    * `include_statements`: the kinds of statements that the lake tables follow, instead of those in `[lake]`.
    * `exclude_statements`: the kinds that they do not follow, instead of those in `[lake]`.
    * `partition`: columns by which the lake tables are partitioned, and on Iceberg transforms of columns: `years`,
      `months`, `days` and `hours` of a time, and `bucket(16, id)` and `truncate(4, name)`.
    * `cluster`: columns by which `cdcavro maintain` clusters the files of Delta Lake, and by which rows in files of
      Iceberg are sorted; `[]` ends that.
    * `form`: the form of the current state, instead of that in `[lake]`.
    """

    where: str | None = None
    key: tuple[str, ...] = ()
    properties: dict[str, str | int | bool] = field(default_factory=dict)
    partition: tuple[str, ...] = ()
    cluster: tuple[str, ...] | None = None
    include_statements: tuple[str, ...] | None = None
    exclude_statements: tuple[str, ...] | None = None
    form: str | None = None
    aspects: ClassVar[str] = (
        "leave_out, mask, where, key, properties, partition, cluster, include_statements, exclude_statements or form"
    )

    def __post_init__(self) -> None:
        """Check what does not depend on a table."""
        super().__post_init__()
        _ = self.shape, self.excluded
        if self.form is not None:
            check_form_name(self.form)

    @property
    def says_something(self) -> bool:
        """Whether anything is said of tables, of whatever aspect."""
        return self.is_about_rows or self.is_about_lake_tables or bool(self._of_shape)

    @property
    def is_about_lake_tables(self) -> bool:
        """Whether anything is said of statements or of the form."""
        return self.is_about_statements or self.form is not None

    @property
    def is_about_statements(self) -> bool:
        """Whether anything is said of statements."""
        return self.include_statements is not None or self.exclude_statements is not None

    @property
    def excluded(self) -> frozenset[str]:
        """The kinds of statements that the lake tables do not follow."""
        return excluded_kinds(self.include_statements, self.exclude_statements or ())

    @property
    def _of_shape(self) -> dict[str, Any]:
        names = (name for name in TableShape.__struct_fields__ if name != "match")
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(NO_SHAPE, name)}

    @property
    def shape(self) -> TableShape | None:
        """The shape of the tables; None if nothing is said of it."""
        said = self._of_shape
        return TableShape(self.match, **said) if said else None
