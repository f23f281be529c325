"""The settings of `cdcavro sync`: a page for each part of a configuration, made from its classes and an example."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

import msgspec
from msgspec import Struct

from cdcavro.sync.config import Config
from cdcavro.sync.settings import setting_texts
from reference import markdown

if TYPE_CHECKING:
    from collections.abc import Iterator

# An example of each setting. Some exclude each other: no pipeline has all of them.
EXAMPLES: Final = """\
state = "/shared/sync/shop"
format = { "shop.orders*" = "debezium", "*" = "mixed" }
rejects = "/shared/rejects/shop"
rejects_table = "ops.rejects"
rejects_topic = "ops.rejects"
schema_changes_table = "ops.schema_changes"
rejects_raw = "encrypt"
rejects_public_key = "/etc/cdcavro/rejects.pub.pem"
rejects_private_key = "${REJECTS_PRIVATE_KEY}"
rejects_hold = false
halves_minutes = 30
max_rejects = "1%"
every = "30 seconds"
merge_every = 10
maintain_every = "1 day"
run = "local"
memory = 512
openlineage = "shop"
spark = { "spark.sql.shuffle.partitions" = "16" }

[source]
kafka = "broker-1:9092,broker-2:9092"
topics = ["binlog"]
pattern = "shop[.].*"
options = { "kafka.security.protocol" = "SASL_SSL", "kafka.sasl.jaas.config" = "${KAFKA_LOGIN}" }
files = "changes/*.jsonl.gz"
most = 200000
framed = true
registry = { url = "https://registry:8081" }

[lake]
delta = "s3a://bucket/lake"
iceberg = "lake"
warehouse = "/shared/warehouse"
current = false
changelog = true
behavior = "exception"
form = "history"
guard_days = 30
parallel = 8
adopt = true
native = false
name = "lake.{database}_{table}"
change_columns = ["time", "topic", "partition", "offset", "headers"]
include_statements = ["column"]
exclude_statements = ["drop.column"]
complete_minutes = 1
readers = "all"
catalog = { type = "rest", uri = "https://catalog:8181", warehouse = "prod" }

[kafka]
servers = "broker:9092"
topic = "cdc.{name}"
options = { "kafka.security.protocol" = "SASL_SSL" }
shards = "blob"
tombstones = false
truncates = false
partitions = 12
replication = 3
parallel = 8
connect = true
headers = true

[avro]
folder = "out"
codec = "null"
parallel = 8
plain = true
headers = true

[registry]
url = "https://registry:8081"
strategy = "topic-record"
topic = "cdc.{name}"
compatibility = "FULL"
user = "sync"
password = "${REGISTRY_PASSWORD}"
ca = "/etc/ssl/registry.pem"
certificate = "/etc/ssl/sync.pem"
key = "/etc/ssl/sync.key"
timeout = 30
patience = 300

[metrics]
listen = "127.0.0.1:9400"
opentelemetry = true
tables = 5000
patience = 1800

[tables]
include = ["shop.*"]
exclude = ["*_tmp"]
table = "@topic"
zone = "Asia/Shanghai"
types = { "shop.orders" = { price = "decimal(10,2)" } }
on_misfit = "reject"
absent = "null"
decimals = "string"
times = "connect"
binaries = "base64"
unavailable = ""

[[table]]
match = "shop.customers*"
leave_out = ["card"]
mask = { email = "sha256", phone = "hmac-sha256", name = { constant = "***" } }
plain = ["note*"]
salt = "${SALT}"
secret = "${MASK_SECRET}"
where = "country = 'CH'"
key = ["tenant", "id"]
partition = ["days(created)", "bucket(16, id)", "region"]
cluster = ["country", "created"]
properties = { "delta.logRetentionDuration" = "interval 60 days" }
include_statements = ["add.column", "rename.column"]
exclude_statements = ["truncate.table"]
form = "history"

[[route]]
from = "shop_*.orders_*"
to = "shop.orders_{2}"
shards = true
"""
# The name of the page for what stands before all sections.
PIPELINE: Final = "pipeline"
# Where the pages for people say more of a section.
PAGES: Final = {
    "": "[Sync topics or files into lake tables](../../how-to/sync.md)",
    "source": "[From Kafka](../../how-to/sync.md#from-kafka) and [framed payloads](../../how-to/sync.md#payloads-framed-with-a-registry)",
    "lake": "[How lake tables follow statements](../../explanation/lake.md), [what reads them](../../how-to/lake-tables.md#what-delta-lakes-tables-need-of-readers), [what the driver writes](../../how-to/size-sync.md#what-the-driver-writes) and [a lake table of another pipeline](../../how-to/sync.md#a-lake-table-of-another-pipeline)",
    "kafka": "[Topics of Kafka](../../how-to/sync-beside-a-lake.md#topics-of-kafka)",
    "avro": "[Avro files](../../how-to/sync-beside-a-lake.md#avro-files)",
    "registry": "[Schemas in a registry](../../how-to/sync-beside-a-lake.md#schemas-in-a-registry)",
    "metrics": "[Metrics](../../how-to/pipeline-health.md#metrics), [OpenTelemetry](../../how-to/pipeline-health.md#opentelemetry) and [health](../../how-to/pipeline-health.md#health-over-http)",
    "table": "[Keep personal data out of the lake](../../how-to/personal-data.md), [partition a table, give it a key](../../how-to/table-shape.md) and [which statements are followed](../../how-to/lake-tables.md#statements-that-are-not-followed)",
    "route": "[Write tables under other names](../../how-to/routes.md)",
    "tables": "[Declare the types of columns](../../how-to/column-types.md) and [set the time zone](../../how-to/time-zones.md)",
}
_STATED: Final = re.compile(r"^(\w+) = (.+)$", re.MULTILINE)
_TYPES: Final = {str: "text", int: "integer", float: "number", bool: "true or false"}
_PLURALS: Final = {str: "texts", int: "integers", float: "numbers", bool: "true or false"}
# What the docstring of a class says to those who read code.
_RAISES: Final = re.compile(r"\s*Raises `\w+`\.")


@dataclass(frozen=True)
class Setting:
    """A setting, as its table has it."""

    # The name with that of its section, such as `lake.delta`, or alone before all sections.
    name: str
    # The type, in words of TOML.
    type: str
    # The default, as TOML has it; "required" where there is none.
    default: str
    # A line of TOML.
    example: str
    # What the docstring of the section's class says of it.
    text: str


def part_list(_: str = "") -> str:
    """Return the list of the parts of a configuration: what each is, with its settings as links."""
    return "\n".join(_part(section, kind) for section, kind in sections())


def settings_page(part: str) -> str:
    """Return the page of a part: what it is, and a table of its settings. Raises `KeyError` for a part that is none."""
    section = "" if part == PIPELINE else part
    kind = dict(sections())[section]
    head = ["Setting", "Type", "Default", "What it does", "Example"]
    table = markdown.table(head, map(_row, settings(section, kind)))
    return markdown.page(_introduction(kind), table, f"More: {PAGES[section]}.")


def sections() -> Iterator[tuple[str, type[Struct]]]:
    """Yield the sections of a configuration with their classes; the first one, without a name, is the whole."""
    yield "", Config
    for field in msgspec.structs.fields(Config):
        kinds = [kind for kind in (field.type, *get_args(field.type)) if _is_section(kind)]
        if kinds:
            yield field.encode_name, kinds[0]


def settings(section: str, kind: type[Struct]) -> Iterator[Setting]:
    """Yield the settings of a section. Raises `LookupError` for one without a line in the docstring or an example."""
    texts = setting_texts(kind)
    examples = dict(_STATED.findall(_example(section)))
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        if kind is Config and any(name == one for one, _ in sections()):
            continue
        if name not in texts or name not in examples:
            raise LookupError(f"{kind.__name__}.{name} has no line in the docstring of its class, or no example here")
        full = f"{section}.{name}" if section else name
        yield Setting(full, _type_text(field.type), _default(field), f"{name} = {examples[name]}", texts[name])


def _part(section: str, kind: type[Struct]) -> str:
    title = f"`{_header(section)}`" if section else "Before all sections"
    names = ", ".join(f"{{setting}}`{one.name.rpartition('.')[2]} <{one.name}>`" for one in settings(section, kind))
    return f"* [{title}]({section or PIPELINE}.md): {names}"


def _row(setting: Setting) -> list[str]:
    text = setting.text[0].upper() + setting.text[1:]
    default = {"": "none", "required": "required"}.get(setting.default) or markdown.code(setting.default)
    return [f"{{setting-entry}}`{setting.name}`", setting.type, default, text, markdown.code(setting.example)]


def _header(section: str) -> str:
    """Return how a section begins, one of which there may be several in two pairs of brackets."""
    return f"[[{section}]]" if f"[[{section}]]" in EXAMPLES else f"[{section}]"


def _introduction(kind: type[Struct]) -> str:
    return _RAISES.sub("", (inspect.getdoc(kind) or "").partition("\n\n* ")[0])


def _example(section: str) -> str:
    """Return the lines of a section of the example."""
    parts = re.split(r"^\[{1,2}(\w+)\]{1,2}\n", EXAMPLES, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}[section]


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _type_text(kind: Any) -> str:
    if isinstance(kind, UnionType) or (get_args(kind) and get_origin(kind) not in (list, tuple, dict)):
        return " or ".join(_type_text(one) for one in get_args(kind) if one is not NoneType)
    if get_origin(kind) in (list, tuple):
        return f"list of {_type_text(get_args(kind)[0])}s"
    if get_origin(kind) is dict:
        values = get_args(kind)[1]
        if isinstance(values, UnionType):
            return f"table of {', '.join(_PLURALS.get(one, 'sections') for one in get_args(values))}"
        return f"table of {'tables' if get_origin(values) is dict else _PLURALS[values]}"
    return "a section" if _is_section(kind) else _TYPES[kind]


def _default(field: Any) -> str:
    if field.default is msgspec.NODEFAULT:
        if field.default_factory is msgspec.NODEFAULT:
            return "required"
        return {list: "[]", dict: "{}"}[field.default_factory]
    return "" if field.default is None else json.dumps(field.default)


def example_config() -> Config:
    """Return the example as a configuration, so that the type of each value is checked."""
    return msgspec.convert(tomllib.loads(EXAMPLES), Config)
