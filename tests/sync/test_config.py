"""Configurations of pipelines: what they become, and what is said of those that are none."""

from __future__ import annotations

import re
import time
import traceback
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from cdcavro.errors import FileError, JobError
from cdcavro.files.rejects import MaxRejects
from cdcavro.lake.evolution import STATEMENTS
from cdcavro.lake.lakes import DeltaLake, IcebergLake
from cdcavro.sync.batches import BatchReport
from cdcavro.sync.config import read_config
from cdcavro.sync.outputs.sink_settings import KafkaTopics, LakeSettings
from cdcavro.sync.settings import Chosen, Formats, RegistrySettings
from cdcavro.sync.sources import Files, Kafka
from cdcavro.table.ddl.steps import TableName
from support.pages import Block, all_pages, blocks
from support.roundtrip import error_of

SIMPLE = 'state = "s"\n[source]\nfiles = "in"\n[lake]\ndelta = "lake"\n'
KAFKA = SIMPLE.partition("[lake]")[0] + '[kafka]\nservers = "a:1"\n'
FRAMED = SIMPLE.replace('files = "in"', 'kafka = "a"\ntopics = ["t"]\nframed = true\n[source.registry]\nurl = "file:x"')
ICEBERG = SIMPLE.partition("[lake]")[0] + '[lake]\niceberg = "ice"\n'
ROUTE = '[[route]]\nfrom = "a"\nto = "b"\n'
PUBLISHED = SIMPLE.partition("[lake]")[0] + '[registry]\nurl = "file:x"\n[kafka]\nservers = "a:1"\n'


def written(folder: Path, text: str) -> Path:
    """Write a configuration."""
    path = folder / "sync.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_configuration_becomes_a_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every setting, and a password from the environment that no repr has."""
    monkeypatch.setenv("LOGIN", "canary-password")
    text = """
        state = "s"
        every = "5 seconds"
        rejects = "r"
        rejects_table = "ops.rejects"
        rejects_topic = "rejects"
        max_rejects = "1%"
        halves_minutes = 30
        [format]
        "shop*" = "canal"
        "*" = "mixed"
        [source]
        kafka = "a:1,b:2"
        pattern = "shop.*"
        most = 7
        options = { "kafka.sasl.jaas.config" = "${LOGIN}" }
        [lake]
        iceberg = "ice"
        warehouse = "w"
        current = false
        changelog = true
        behavior = "evolve"
        guard_days = 0.5
        parallel = 2
        [tables]
        include = ["shop.*"]
        exclude = ["*_tmp"]
        zone = "Asia/Shanghai"
        types = { t = { a = "int" } }
        [registry]
        url = "https://registry.example/path"
        topic = "cdc.{name}"
        compatibility = "full"
        user = "me"
        password = "${LOGIN}"
        timeout = 3
        patience = 5
        [spark]
        "spark.jars.packages" = "a:b:1"
    """
    config = read_config(written(tmp_path, text))
    pipeline = config.pipeline("sync.toml")
    assert isinstance(pipeline.source, Kafka)
    assert (pipeline.source.servers, pipeline.source.pattern, pipeline.source.most) == ("a:1,b:2", "shop.*", 7)
    assert pipeline.source.options == {"kafka.sasl.jaas.config": "canary-password"}
    assert "canary" not in repr(pipeline)
    lake = pipeline.sink
    assert (lake.sink, lake.is_current, lake.is_changelog, lake.behavior) == (IcebergLake("ice"), False, True, "evolve")
    assert (lake.guard, lake.parallel) == (timedelta(hours=12), 2)
    registry = pipeline.registry
    assert registry is not None
    assert (registry.url, registry.auth) == ("https://registry.example/path", ("me", "canary-password"))
    assert (registry.topic, registry.strategy, registry.compatibility) == ("cdc.{name}", None, "full")
    assert (registry.timeout, registry.patience) == (3, 5)
    settings = pipeline.settings
    assert settings.formats == Formats({"shop*": "canal", "*": "mixed"})
    assert settings.chosen == Chosen(("shop.*",), ("*_tmp",))
    assert str(settings.options["zone"]) == "Asia/Shanghai"
    assert settings.max_rejects == MaxRejects(Fraction(1), is_percent=True)
    assert (pipeline.state, pipeline.rejects, config.every) == ("s", "r", "5 seconds")
    assert (settings.rejects_table, settings.rejects_topic) == ("ops.rejects", "rejects")
    assert settings.halves_minutes == 30


def test_statements_are_followed_by_table_and_else_as_the_lake_says(tmp_path: Path):
    """The first section that says anything of statements counts, whatever others say of rows."""
    text = """
        rejects_raw = "omit"
        state = "s"
        [source]
        files = "in"
        [lake]
        delta = "lake"
        include_statements = ["column", "create.table"]
        exclude_statements = ["drop"]
        [[table]]
        match = "shop.*"
        leave_out = ["card"]
        [[table]]
        match = "SHOP.orders*"
        exclude_statements = ["truncate.table"]
        [[table]]
        match = "*"
        include_statements = []
        [[table]]
        match = "shop.orders"
        leave_out = ["note"]
    """
    pipeline = read_config(written(tmp_path, text)).pipeline("x")
    assert isinstance(pipeline.sink, LakeSettings)
    rules = pipeline.sink.statements
    assert rules.excluded == {"drop.column", "drop.table", "truncate.table"}
    assert rules.excluded_for([TableName("shop", None, "orders_2")]) == {"truncate.table"}
    assert rules.excluded_for([TableName("shop", None, "x")]) == {*STATEMENTS}
    assert [rule.leave_out for rule in pipeline.settings.protection.rules] == [("card",), ("note",)]


def test_no_clusters_are_said_of_tables_whatever_others_have(tmp_path: Path):
    """The first section that says anything of the shape of a table counts."""
    text = """
        rejects_raw = "omit"
        state = "s"
        [source]
        files = "in"
        [lake]
        delta = "lake"
        [[table]]
        match = "shop.orders"
        cluster = []
        [[table]]
        match = "shop.*"
        cluster = ["a"]
    """
    shapes = read_config(written(tmp_path, text)).pipeline("x").settings.shapes
    assert [(shape.match, shape.cluster) for shape in shapes] == [("shop.orders", ()), ("shop.*", ("a",))]


def test_framed_payloads_have_a_registry_of_their_own_or_that_of_the_tables(tmp_path: Path):
    """What is told of the source counts."""
    own = read_config(written(tmp_path, FRAMED + '[registry]\nurl = "file:y"')).pipeline("x")
    assert (own.settings.framed, own.registry) == (RegistrySettings("file:x"), RegistrySettings("file:y"))
    text = FRAMED.replace('[source.registry]\nurl = "file:x"', "") + '[registry]\nurl = "file:y"'
    shared = read_config(written(tmp_path, text)).pipeline("x")
    assert shared.settings.framed == shared.registry == RegistrySettings("file:y")
    assert not shared.settings.has_id_headers
    told = read_config(written(tmp_path, FRAMED.replace("true", '"headers"'))).pipeline("x").settings
    assert (told.framed, told.has_id_headers) == (RegistrySettings("file:x", framing="headers"), True)


def test_topics_are_a_sink(tmp_path: Path):
    """With the rule of shards, and options that no repr has."""
    text = (
        KAFKA
        + 'shards = "tuple"\nconnect = true\noptions = { "kafka.sasl.jaas.config" = "canary" }\n[registry]\nurl = "file:x"\n'
    )
    sink = read_config(written(tmp_path, text)).pipeline("x").sink
    assert isinstance(sink, KafkaTopics)
    assert (sink.servers, sink.topic, sink.shards, sink.tombstones) == ("a:1", "{name}", "tuple", True)
    assert sink.is_connect
    assert "canary" not in repr(sink)


def test_options_count_instead_of_what_the_file_says(tmp_path: Path):
    """Member by member, and without a file they are all that there is."""
    instead = {"state": "other", "lake": {"changelog": True}}
    pipeline = read_config(written(tmp_path, SIMPLE), instead).pipeline("x")
    assert (pipeline.state, pipeline.source, pipeline.sink.sink) == ("other", Files("in"), DeltaLake("lake"))
    assert pipeline.sink.is_changelog
    alone = read_config(None, {"state": "s", "source": {"files": "in"}, "lake": {"delta": "lake"}})
    assert alone.pipeline("the options").source == Files("in")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("state =", "expected TOML, got Invalid value"),
        ('[source]\nfiles = "in"\n[lake]\ndelta = "l"', "expected a configuration, got one without state"),
        ('state = "s\n', "expected TOML, got a string without an end on its line (at line 1, column 11)"),
        (' {"id": 1}\n', "expected TOML, got what looks like messages, which --files names"),
        (
            SIMPLE.replace('"in"', '"in"\nmost = -1'),
            "line 4: most is how many messages, or files, a batch has at most: at",
        ),
        (SIMPLE + '[tables]\ndecimals = "double"', "line 7: decimals are precise or string, not 'double', in [tables]"),
        (
            SIMPLE + "paralel = 3",
            "got line 6: [lake] has no setting 'paralel': did you mean parallel?",
        ),
        (SIMPLE.replace('"in"', "7"), "got line 3: files in [source] must be a text, got an integer"),
        (
            SIMPLE.replace("files", "path"),
            "got line 3: [source] has no setting 'path': there are kafka, topics, pattern, ",
        ),
        (SIMPLE.replace('files = "in"', "most = 1"), "expected either kafka or files in [source], got none"),
        (
            SIMPLE.replace('files = "in"', 'files = "in"\nkafka = "a"'),
            "expected either kafka or files in [source], got both",
        ),
        (SIMPLE.replace('files = "in"', 'kafka = "a"'), "Kafka needs either topics or a pattern of their names"),
        (
            SIMPLE.replace('files = "in"', 'kafka = "a"\ntopics = ["t"]\noptions = { failOnDataLoss = "false" }'),
            "the options failOnDataLoss of Spark's source of Kafka cannot be set",
        ),
        (
            SIMPLE.replace("delta", "hudi"),
            "got line 5: [lake] has no setting 'hudi': there are delta, iceberg, warehouse",
        ),
        (SIMPLE.replace('delta = "lake"', "parallel = 1"), "expected either delta or iceberg in [lake], got none"),
        (SIMPLE + 'behavior = "maybe"', "lenient, ignore as behavior in [lake], got 'maybe'"),
        (SIMPLE + 'change_columns = ["header"]', "file, line, headers, not 'header'"),
        (SIMPLE + 'change_columns = ["time", "time"]', "'time' stands twice among the columns about a change"),
        (SIMPLE + 'readers = "polars"', "readers is \"all\", or not stated, not 'polars'"),
        (SIMPLE + "complete_minutes = -1", "a number of minutes as complete_minutes in [lake], got '-1"),
        (SIMPLE + "complete_minutes = nan", "a number of minutes as complete_minutes in [lake], got 'nan'"),
        (SIMPLE + "guard_days = -1", "a number of days as guard_days in [lake], got '-1"),
        (SIMPLE + "guard_days = 1e12", "a number of days as guard_days in [lake], got"),
        (
            SIMPLE + 'name = "{database}"',
            "name in the lake has two or three parts between dots, made of {database}, {schema}",
        ),
        (SIMPLE + 'form = "scd"', "'scd' is no form of a current state: there are current, soft, history, in [lake]"),
        (
            SIMPLE + '\n[[table]]\nmatch = "t"\nform = "histroy"',
            "line 9: 'histroy' is no form of a current state: did you mean \"history\"?, in [[table]]",
        ),
        (SIMPLE + 'form = "HISTORY"', "line 6: 'HISTORY' is no form of a current state: did you mean \"history\"?"),
        (SIMPLE + 'name = "l.{databse}_{table}"', "not 'l.{databse}_{table}': did you mean {database}?, in [lake]"),
        (SIMPLE + 'name = "l.{Table}"', "not 'l.{Table}': did you mean {table}?, in [lake]"),
        (SIMPLE + 'name = "l.{x}_{table}"', "not 'l.{x}_{table}', in [lake]"),
        (
            SIMPLE + 'current = false\nchangelog = true\n[[table]]\nmatch = "t"\nform = "soft"',
            "expected current = true in [lake] for form = 'soft', got false",
        ),
        (
            SIMPLE.partition("[lake]")[0] + '[avro]\nfolder = "f"\n[[table]]\nmatch = "t"\nform = "soft"',
            "expected [lake] for form of [[table]], got another sink",
        ),
        (
            SIMPLE + 'form = "soft"\ncurrent = false\nchangelog = true',
            "expected current = true in [lake] for form = 'soft', got false",
        ),
        (SIMPLE.replace('"lake"', '""'), "line 5: delta is empty: it names a place, or is left out, in [lake]"),
        (ICEBERG.replace('"ice"', '" "'), "line 5: iceberg is empty"),
        (ICEBERG + 'warehouse = ""', "line 6: warehouse is empty"),
        (SIMPLE.replace('"s"', '""'), "got state is empty: it names a place, or is left out"),
        ('rejects = ""\n' + SIMPLE, "line 1: rejects is empty"),
        (SIMPLE.replace('"in"', '""'), "line 3: files is empty"),
        (SIMPLE.replace('files = "in"', 'kafka = ""\ntopics = ["t"]'), "line 3: kafka is empty"),
        (
            SIMPLE.replace('files = "in"', 'kafka = "a"\ntopics = [""]'),
            "line 4: topics has an empty text: leave it out",
        ),
        (SIMPLE + '[tables]\ninclude = ["shop.*", ""]', "line 7: include has an empty text"),
        (SIMPLE.partition("[lake]")[0] + '[avro]\nfolder = ""', "line 4: folder is empty"),
        (SIMPLE + "parallel = 0", "line 6: parallel is at least 1, not 0, in [lake]"),
        (KAFKA + "parallel = -1", "parallel is at least 1, not -1, in [kafka]"),
        (KAFKA + "partitions = 0", "partitions is at least 1, not 0, in [kafka]"),
        (KAFKA + "replication = -1", "replication is at least 1, not -1, in [kafka]"),
        (SIMPLE + '[registry]\nurl = "file:x"\ntimeout = 0', "timeout is a number of seconds above 0, not 0"),
        (SIMPLE + '[registry]\nurl = "file:x"\npatience = nan', "patience is a number of seconds, at least 0, not nan"),
        (SIMPLE.replace('"s"', '"lake/../lake"'), "state and the lake are one folder"),
        (
            SIMPLE.replace('"s"', '"file:///s"'),
            "the state is in a folder, or in a store such as s3://bucket/state, not at file",
        ),
        (
            SIMPLE.replace('"s"', '"hdfs:///s"'),
            "the state is in a folder, or in a store such as s3://bucket/state, not at hdfs",
        ),
        ('rejects = "lake/"\n' + SIMPLE, "rejects and the lake are one folder, "),
        (ICEBERG + 'warehouse = "s"', "state and the lake are one folder"),
        (SIMPLE.replace('"s"', '"s3://b/x"').replace('"lake"', '"s3a://b/x/"'), "state and the lake are one folder"),
        (SIMPLE.partition("[lake]")[0] + '[avro]\nfolder = "s"', "state and folder in [avro] are one folder"),
        (SIMPLE.partition("[lake]")[0] + '[avro]\nfolder = "s/rejects"', "rejects and folder in [avro] are one folder"),
        (SIMPLE + ROUTE + ROUTE.replace("b", "c"), "[[route]] from 'a' stands twice, and the second would never count"),
        ("merge_every = 0\n" + SIMPLE, "merge_every is 1 for rows that are written with every batch"),
        ('max_rejects = "few"\n' + SIMPLE, "max_rejects: expected a number such as 5 or a share such as 2%, got 'few'"),
        (SIMPLE + 'catalog = { type = "x" }', "names in catalogs of type hive only, not 'x'"),
        (SIMPLE + "current = false", "expected current or changelog in [lake], got neither"),
        (SIMPLE + '[avro]\nfolder = "f"', "expected one of [lake], [kafka] and [avro], got several"),
        (SIMPLE.partition("[lake]")[0], "expected one of [lake], [kafka] and [avro], got none"),
        (SIMPLE.partition("[lake]")[0] + '[avro]\nfolder = "s3a://b"', "Avro files are written to a folder, not to an"),
        (SIMPLE.partition("[lake]")[0] + '[avro]\nfolder = "f"\ncodec = "zip"', "the codecs are null, deflate"),
        (SIMPLE.replace('"in"', '"in"\nframed = true'), "in [source.registry] or [registry], got none"),
        (FRAMED.replace("framed = true", ""), "framed = true in [source] for its registry"),
        (
            FRAMED.replace("true", '"apicurio"'),
            "values are framed by confluent, apicurio-global-id, apicurio-content-id, ",
        ),
        (FRAMED.replace("true", '""'), "values are framed by confluent, "),
        (FRAMED.replace("file:x", "ftp://x"), "a registry in [source.registry], got registry 'ftp://x'"),
        (FRAMED.replace('kafka = "a"\ntopics = ["t"]', 'files = "in"'), "framed payloads are read from Kafka"),
        (KAFKA, "framed payloads need a registry"),
        (KAFKA + 'shards = "hash"', "shards are those of blob or tuple, not 'hash'"),
        (KAFKA + 'topic = "{table}"', "a topic has letters"),
        (KAFKA + 'options = { topic = "t" }', "the options topic of Spark's sink of Kafka cannot be set"),
        (
            KAFKA + 'options = { "acks" = "1", "security.protocol" = "SSL" }',
            "options of Kafka's client begin with 'kafka.', such as 'kafka.security.protocol', not 'security.protocol'",
        ),
        (
            FRAMED.replace("framed = true", 'options = { "kafka.client.id" = "c", "sasl.mechanism" = "PLAIN" }'),
            "options of Kafka's client begin with 'kafka.', such as 'kafka.sasl.mechanism', not 'sasl.mechanism'",
        ),
        (KAFKA + '[registry]\nurl = "file:x"\ntopic = "t"', "the registry takes no topic of its own"),
        (KAFKA + 'topic = "t"\n[registry]\nurl = "file:x"\nstrategy = "topic"', "the versions of one table"),
        (SIMPLE + '[registry]\nurl = "ftp://x"', "expected a registry in [registry], got registry 'ftp://x'"),
        (SIMPLE + '[registry]\nurl = "file:x"\nstrategy = "topic"', "the strategy topic needs a topic"),
        (SIMPLE + '[registry]\nurl = "file:x"\ncompatibility = "some"', "a compatibility level is one of BACKWARD"),
        (
            SIMPLE + '[tables]\nzone = "Mars"',
            "expected the name of a time zone as zone in [tables], got 'Mars'",
        ),
        (SIMPLE + '[tables]\ntypes = { t = { a = "huge" } }', "[tables.types]"),
        (SIMPLE + '[tables]\non_misfit = "shrug"', "on_misfit is one of"),
        (SIMPLE + '[tables]\nabsent = "none"', "absent is unstated or null, not 'none'"),
        ('format = "canall"\n' + SIMPLE, "canall"),
        ('every = "often"\n' + SIMPLE, "every is a time such as \"10 seconds\", not 'often'"),
        ('every = "1 second2 minutes"\n' + SIMPLE, "every is a time such as"),
        ('every = "5\u00a0seconds"\n' + SIMPLE, "every is a time such as"),
        ('every = "0 seconds"\n' + SIMPLE, "every is a time such as \"10 seconds\", not '0 seconds'"),
        ('every = "1 month"\n' + SIMPLE, "every is a time such as \"10 seconds\", not '1 month'"),
        ('max_rejects = "some"\n' + SIMPLE, "expected a number such as 5 or a share such as 2%, got 'some'"),
        ("halves_minutes = -1\n" + SIMPLE, "halves_minutes is a number of minutes above 0, not -1"),
        ('rejects_table = "rejects"\n' + SIMPLE, "rejects_table is called database.table, not 'rejects'"),
        ('rejects_table = "a.b.c"\n' + SIMPLE, "rejects_table is called database.table, not 'a.b.c'"),
        (f'rejects_table = "a.{"b" * 201}"\n' + SIMPLE, "is longer than 200 bytes, and no name in a lake"),
        ('rejects_table = "a.b"\n' + SIMPLE.partition("[lake]")[0] + '[avro]\nfolder = "f"', "table of the lake, and"),
        ('rejects_topic = "t"\n' + SIMPLE, "rejects_topic needs Kafka as the source or as the sink"),
        (f'rejects_topic = "t"\n{PUBLISHED}topic = "t"', "rejects_topic is that of the tables: 't'"),
        (
            'rejects_topic = "{name}"\n' + PUBLISHED,
            "rejects_topic is one topic of at most 249 characters, not '{name}'",
        ),
        ('rejects_topic = "a b"\n' + PUBLISHED, "a topic has letters, digits, dots, _ and -"),
        (
            'rejects_topic = "b"\n' + SIMPLE.replace('files = "in"', 'kafka = "a"\ntopics = ["a", "b"]'),
            "rejects_topic is one that the source reads: 'b'",
        ),
        (
            SIMPLE + 'include_statements = ["add.colum"]',
            "'add.colum' is no kind of statement: did you mean add.column?",
        ),
        (SIMPLE + 'exclude_statements = ["create.table"]', "exclude in [tables] leaves tables out"),
        (
            SIMPLE + '[[table]]\nmatch = "t"\nexclude_statements = ["x"]',
            "'x' is no kind of statement: there are add.column, drop.column, rename.column,",
        ),
        (
            SIMPLE.partition("[lake]")[0] + '[avro]\nfolder = "f"\n[[table]]\nmatch = "t"\nexclude_statements = []',
            "expected [lake] for include_statements and exclude_statements of [[table]], got another sink",
        ),
        ('rejects = "${NOT_SET_AT_ALL}"\n' + SIMPLE, "expected the environment variable NOT_SET_AT_ALL, got none"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, said: str):
    """A configuration that is misread would sync the wrong thing."""
    path = written(tmp_path, text)
    with pytest.raises(FileError) as caught:
        read_config(path).pipeline(str(path))
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


SHOWN = [block for page in all_pages() for block in blocks(page) if block.language == "toml"]


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: block.place)
def test_configurations_that_pages_show_are_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: Block):
    """They become a pipeline, once what they name is in the environment."""
    for name in re.findall(r"\$\{(\w+)\}", block.text):
        monkeypatch.setenv(name, "x")
    assert read_config(written(tmp_path, block.text)).pipeline("sync.toml").state


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SIMPLE.replace("state =", "sate ="), "line 1: no setting is called 'sate': did you mean state?"),
        ("# [lake]\n" + SIMPLE.replace("[lake]", "[laek]"), "line 5: no setting is called 'laek': did you mean lake?"),
        (SIMPLE.replace("files", "fiels"), "line 3: [source] has no setting 'fiels': did you mean files?"),
        (SIMPLE + "guard_day = 3", "line 6: [lake] has no setting 'guard_day': did you mean guard_days?"),
        (SIMPLE + "[tables]\nzon = 'UTC'", "line 7: [tables] has no setting 'zon': did you mean zone?"),
        (KAFKA + "topik = 't'", "line 6: [kafka] has no setting 'topik': did you mean topic?"),
        (FRAMED + "xyz = 'x'", "[lake] has no setting 'xyz': there are delta"),
        ("zonne = 'UTC'\n" + SIMPLE, "line 1: no setting is called 'zonne': did you mean zone in [tables]?"),
        (SIMPLE + "keys = ['id']", "line 6: [lake] has no setting 'keys': did you mean key in [[table]]?"),
        (SIMPLE + "zone = 'UTC'", "line 6: [lake] has no setting 'zone': did you mean zone in [tables]?"),
        (FRAMED.replace("url", "ulr"), "line 7: [source.registry] has no setting 'ulr': did you mean url?"),
        (SIMPLE.replace("[lake]\ndelta", "lake.detla"), "line 4: [source] has no setting 'lake': there are kafka"),
        (
            "lake.detla = 'l'\nstate = 's'\nsource = { files = 'i' }",
            "line 1: [lake] has no setting 'detla': did you mean delta?",
        ),
        ("state = 's'\nsource = { fils = 'i' }\n[lake]", "line 2: [source] has no setting 'fils': did you mean files?"),
        (SIMPLE + 'changelog = "yes"', "line 6: changelog in [lake] must be true or false, got a text"),
        (SIMPLE + "[tables]\nabsent = true", "line 7: absent in [tables] must be a text, got true or false"),
        (SIMPLE + "[tables]\ninclude = 'a'", "line 7: include in [tables] must be a list, got a text"),
        (SIMPLE + "[registry]\n", "line 6: [registry] lacks url"),
        (
            SIMPLE + 'rejects_raw = "omit"',
            "line 6: [lake] has no setting 'rejects_raw': it stands above the first section",
        ),
        (SIMPLE + "[table]\nmatch = 't'", "line 6: rules for tables are sections [[table]], each with two brackets"),
        (SIMPLE + "[route]\nfrom = 't'\nto = 'u'", "line 6: routes are sections [[route]], each with two brackets"),
        (SIMPLE + "[[route]]\nfrom = 'a'\nto = 'b'\n[[route]]\nto = 'b'", "line 9: [[route]] lacks from"),
        (SIMPLE + "[[route]]\nfrom = 'a.b'\nto = 'c'", "to has as many parts as from, 2, not 'c', in [[route]]"),
        (SIMPLE + "[[tables]]\nmatch = 't'", "[tables] is one section; rules for tables are sections [[table]]"),
        ('every = "1 parsec"\n' + SIMPLE, 'line 1: every is a time such as "10 seconds"'),
        (
            SIMPLE + "[[table]]\nmatch = 'a'\nform = 'soft'\n[[table]]\nmatch = 't'\nkey = ['id']\nform = 'sotf'",
            "line 12: 'sotf' is no form of a current state",
        ),
        (SIMPLE + "[[table]]\nmatch = 't'\n[table.mask]\nname = 'hsah'", "line 8: "),
        # Each is right without the other.
        (SIMPLE + "[metrics]\ntables = 0\nlisten = 'a:1'\npatience = 0", "line 6: tables in [metrics] is a number"),
        (SIMPLE + "[metrics]\ntables = 5", "line 6: [metrics] needs listen"),
    ],
)
def test_a_slip_is_told_with_its_line_and_the_nearest_setting(tmp_path: Path, text: str, said: str):
    """In whichever of the ways TOML has for a section."""
    path = written(tmp_path, text)
    with pytest.raises(FileError) as caught:
        read_config(path)
    assert str(caught.value).startswith(f"{path}: expected a configuration, got ")
    assert said in str(caught.value)


def test_all_misspelt_settings_are_told_at_once(tmp_path: Path):
    """Each with its line."""
    text = "stat = 's'\nsource = { fiels = 'i' }\n[lake]\ndelta = 'l'\n[[table]]\nmatch = 't'\nforn = 'soft'"
    with pytest.raises(FileError) as caught:
        read_config(written(tmp_path, text))
    assert str(caught.value).partition(", got ")[2].split("; ") == [
        "line 1: no setting is called 'stat': did you mean state?",
        "line 2: [source] has no setting 'fiels': did you mean files?",
        "line 7: [[table]] has no setting 'forn': did you mean form?",
    ]


@pytest.mark.parametrize("more", ['topics = ["a"]', 'pattern = "a.*"', 'options = { a = "b" }'])
def test_files_with_what_is_of_kafka_is_refused(tmp_path: Path, more: str):
    """One of the two would be ignored."""
    path = written(tmp_path, SIMPLE.replace('files = "in"', f'files = "in"\n{more}'))
    said = f"expected either files or kafka in [source], got files and {more.partition(' ')[0]}, which are of kafka"
    with pytest.raises(FileError) as caught:
        read_config(path).pipeline("sync.toml")
    assert str(caught.value) == f"sync.toml: {said}"


def test_a_section_that_is_none_is_said(tmp_path: Path):
    """Also where options say something of it."""
    path = written(tmp_path, 'state = "s"\nsource = "in"\n[lake]\ndelta = "lake"\n')
    with pytest.raises(FileError, match="got line 2: source in it must be a section, got a text"):
        read_config(path, {"source": {}, "lake": {}})


@pytest.mark.parametrize(
    ("pattern", "table", "is_meant"),
    [
        ("tmp*", TableName("tmpdb", None, "orders"), False),
        ("tmp*", TableName("shop", None, "tmp_x"), True),
        ("shop.*", TableName("shop", None, "orders"), True),
        ("shop.*", TableName("db", "shop", "orders"), True),
        ("db.shop.*", TableName("db", "shop", "orders"), True),
        ("*", TableName("shop", None, "a.b"), True),
        ("a.b", TableName("shop", None, "a.b"), True),
        ("shop.a", TableName(None, None, "a"), False),
    ],
)
def test_a_pattern_means_the_tables_whose_name_has_as_many_parts(pattern: str, table: TableName, is_meant: bool):
    """A pattern of tables says nothing of databases that are called alike."""
    assert Chosen(include=(pattern,)).has(table) is is_meant
    assert Chosen(exclude=(pattern,)).has(table) is not is_meant


def test_a_file_that_is_not_there_is_said(tmp_path: Path):
    """With its path."""
    with pytest.raises(FileError, match=r"nowhere\.toml: expected a file that can be read"):
        read_config(tmp_path / "nowhere.toml")


SECRETS = """
    state = "s"
    [source]
    kafka = "127.0.0.1:1"
    topics = ["shop"]
    [source.options]
    "kafka.sasl.jaas.config" = "org.apache.kafka.common.security.plain.PlainLoginModule required username='u' password='${CANARY}';"
    "kafka.sasl.mechanism" = "PLAIN"
    "kafka.client.rack" = "${CANARY}"
    "kafka.request.timeout.ms" = "1000"
    "kafka.default.api.timeout.ms" = "1500"
    [lake]
    delta = "lake"
    [spark]
    "spark.hadoop.fs.azure.account.key.shop" = "canary-password"
    "spark.sql.catalog.ice.credential" = "client:canary-password"
    "spark.shop.proxy" = "http://user:canary-password@127.0.0.1"
    "spark.shop.own" = "${CANARY}"
    "spark.shop.other" = "shown"
    "spark.redaction.regex" = "shop[.]hidden"
    "spark.shop.hidden" = "canary-password"
"""


def test_no_secret_is_in_a_repr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of a configuration, its parts, its pipeline or what this is made of."""
    monkeypatch.setenv("CANARY", "canary-password")
    config = read_config(written(tmp_path, SECRETS))
    assert config.spark["spark.shop.own"] == "canary-password"
    made = config.pipeline("sync.toml")
    for thing in (config, config.source, config.lake, made, made.source, vars(made)):
        assert "canary" not in repr(thing)
        assert "canary" not in str(thing)


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ('"in"', '"s3a://user:canary-password@shop/in"', "files"),
        ('files = "in"', 'kafka = "user:canary-password@127.0.0.1:9092"', "kafka"),
        ('"lake"', '"s3a://user:canary-password@shop"', "delta"),
        ('"s"', '"s3a://user:canary-password@shop"', "state"),
    ],
)
def test_an_address_with_a_password_is_refused_and_not_shown(tmp_path: Path, old: str, new: str, name: str):
    """It would be in reports, in errors and in names of folders."""
    with pytest.raises(FileError) as caught:
        read_config(written(tmp_path, SIMPLE.replace(old, new)))
    assert f"an address without user and password as {name}" in str(caught.value)
    assert "canary" not in str(caught.value) + repr(caught.value)


def test_a_byte_order_mark_before_a_configuration_is_passed_over(tmp_path: Path):
    """As editors of Windows write it."""
    path = written(tmp_path, SIMPLE)
    plain = read_config(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_config(path) == plain


ANYWHERE = [
    ('files = "in"', 'files = "${LOGIN}/in"'),
    ('state = "s"', 'state = "s"\nevery = "${LOGIN}"'),
    ('state = "s"', 'state = "s"\nformat = "${LOGIN}"'),
    ('state = "s"', 'state = "s"\nformat = { "shop*" = "${LOGIN}" }'),
    ('state = "s"', 'state = "s"\nmax_rejects = "${LOGIN}"'),
    ('state = "s"', 'state = "s"\nrejects_table = "${LOGIN}"'),
    ('state = "s"', 'state = "s"\nrejects_topic = "${LOGIN}"'),
    ('state = "s"', 'state = "s"\nrejects = "${LOGIN}"'),
    ('state = "s"', 'state = "${LOGIN}"'),
    ('files = "in"', 'kafka = "${LOGIN}"\ntopics = ["${LOGIN}"]'),
    ('files = "in"', 'kafka = "${LOGIN}"\npattern = "${LOGIN}"\noptions = { minPartitions = "${LOGIN}" }'),
    ('files = "in"', 'files = "in"\nmost = "${LOGIN}"'),
    ('delta = "lake"', 'delta = "${LOGIN}"'),
    ('delta = "lake"', 'iceberg = "${LOGIN}"\nwarehouse = "${LOGIN}"'),
    ('delta = "lake"', 'delta = "lake"\nbehavior = "${LOGIN}"'),
    ('[lake]\ndelta = "lake"', '[kafka]\nservers = "${LOGIN}"\ntopic = "${LOGIN}-{name}"\nshards = "${LOGIN}"'),
    ('[lake]\ndelta = "lake"', '[avro]\nfolder = "x://${LOGIN}"\ncodec = "${LOGIN}"'),
    ("[lake]", '[registry]\nurl = "${LOGIN}"\nstrategy = "${LOGIN}"\ntopic = "${LOGIN}"\n[lake]'),
    ("[lake]", '[registry]\nurl = "file:x"\ncompatibility = "${LOGIN}"\n[lake]'),
    *[
        ("[lake]", f"[tables]\n{line}\n[lake]")
        for line in (
            'zone = "${LOGIN}"',
            'table = "${LOGIN}"',
            'include = ["${LOGIN}.*"]',
            'exclude = ["${LOGIN}"]',
            'on_misfit = "${LOGIN}"',
            'decimals = "${LOGIN}"',
            'times = "${LOGIN}"',
            'binaries = "${LOGIN}"',
            'unavailable = "${LOGIN}"',
            'types = { orders = { id = "${LOGIN}" } }',
        )
    ],
]


@pytest.mark.parametrize("value", ["canary password", "Canary-'é\"\\/:1", "canary" * 40, "k" * 70 + "canary" * 3])
@pytest.mark.parametrize(("old", "new"), ANYWHERE)
def test_what_came_from_a_variable_is_in_no_error_and_no_repr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, value: str
):
    """Wherever in a configuration it stands, and in whatever form a sentence has it."""
    monkeypatch.setenv("LOGIN", value)
    path = written(tmp_path, SIMPLE.replace(old, new))
    try:
        config = read_config(path)
        made = config.pipeline("sync.toml")
        shown = "".join(map(repr, (config, config.source, config.tables, made, made.source, made.sink, made.settings)))
    except FileError as error:
        shown = str(error) + repr(error) + "".join(traceback.format_exception(error))
    assert "canary" not in shown.lower()
    assert value[:20] not in shown


def test_an_error_and_a_report_name_the_variable_instead_of_its_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A reader still knows what is meant."""
    monkeypatch.setenv("TOPIC", "canary")
    text = 'state = "s"\nevery = "${TOPIC}"\n[source]\nkafka = "a:1"\ntopics = ["${TOPIC}"]\n[lake]\ndelta = "lake"\n'
    with pytest.raises(FileError, match=r"not '\$\{TOPIC\}'") as caught:
        read_config(written(tmp_path, text))
    assert caught.value.__cause__ is None
    redaction = read_config(written(tmp_path, text.replace('every = "${TOPIC}"', ""))).redaction
    report = BatchReport(3, {"read": 1}, steps=["canary.t: added"], waiting={"canary.t": "why", "${TOPIC}.t": "why"})
    hidden = redaction.of(report)
    assert hidden.steps == ["${TOPIC}.t: added"]
    assert list(hidden.waiting) == ["${TOPIC}.t", "${TOPIC}.t'"]
    assert report.steps == ["canary.t: added"]
    with pytest.raises(JobError) as raised, redaction.errors():
        raise JobError("Kafka says canary%2Fx, 'canar...' and 'other...'")
    assert str(raised.value) == "Kafka says ${TOPIC}%2Fx, '${TOPIC}...' and 'other...'"


def test_a_short_value_hides_no_words_of_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is hidden where it stands alone."""
    monkeypatch.setenv("FILES", "in")
    monkeypatch.setenv("MOST", "5")
    text = SIMPLE.replace('"in"', '"${FILES}"').replace('state = "s"', 'state = "s"\nmax_rejects = "${MOST}"')
    redaction = read_config(written(tmp_path, text)).redaction
    assert redaction.of("read 5 in 5 s from 'in', in") == "read 5 in 5 s from '${FILES}', in"
    assert redaction.of("in") == "${FILES}"


def test_a_login_from_a_variable_hides_no_words_of_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Otherwise errors would speak of `sasl_${LOGIN}text`; the user and the password are hidden, also without quotes."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    monkeypatch.setenv("LOGIN", f'{module} username="canary.1" password=canary-2;')
    text = SIMPLE.replace(
        'files = "in"', 'kafka = "a:1"\ntopics = ["t"]\noptions = { "kafka.sasl.jaas.config" = "${LOGIN}" }'
    )
    redaction = read_config(written(tmp_path, text)).redaction
    said = "sasl_plaintext://a:1: kafka.security.protocol of org.apache"
    assert redaction.of(said) == said
    assert redaction.of("canary.1 and canary-2 are refused") == "${LOGIN} and ${LOGIN} are refused"
    monkeypatch.setenv("LOGIN", "password=canary-2 username=canary.1")
    redaction = read_config(written(tmp_path, text.replace("${LOGIN}", f"{module} ${{LOGIN}};"))).redaction
    assert redaction.of("canary.1 and canary-2 are refused") == "${LOGIN} and ${LOGIN} are refused"


@pytest.mark.parametrize(
    ("address", "is_refused"),
    [
        ("s3a://KEY:a/b@bucket/in", True),
        ("s3a://KEY:1/b@bucket/in", True),
        ("s3a://KEY:a/b/c@bucket", True),
        ("https://user:12345678/x@host/in", True),
        ("hdfs://name:9000/user@home/in", False),
        ("abfss://container@account.dfs.core.windows.net/in", False),
        ("file:///data/a:b@c", False),
        ("s3a://bucket/a:b@c", False),
    ],
)
@pytest.mark.parametrize("name", ["files", "delta", "folder", "rejects"])
def test_a_password_with_a_slash_is_seen_in_an_address(tmp_path: Path, address: str, is_refused: bool, name: str):
    """A port, and a path with a colon and an at sign, are none."""
    text = {
        "files": SIMPLE.replace('"in"', f'"{address}"'),
        "delta": SIMPLE.replace('"lake"', f'"{address}"'),
        "folder": SIMPLE.replace('[lake]\ndelta = "lake"', f'[avro]\nfolder = "{address}"'),
        "rejects": f'rejects = "{address}"\n{SIMPLE}',
    }[name]
    if not is_refused:
        assert read_config(written(tmp_path, text))
        return
    with pytest.raises(FileError) as caught:
        read_config(written(tmp_path, text))
    assert "an address without user and password" in str(caught.value)
    assert "KEY" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 50_000, "TOML, got more levels of brackets"),
        ("a = " + "{a=" * 50_000, "TOML, got more levels of brackets"),
        ("a = " + "[" * 300 + "]" * 300, "a configuration"),
        (
            "\n".join("a." * i + f"b{i} = 1" for i in range(400)),
            "keys of at most 32 parts, got a longer one in line 33",
        ),
        ("[" + "a." * 100_000 + "b]", "keys of at most 32 parts"),
        ("[" + "'a' . " * 1_000 + "b]", "keys of at most 32 parts"),
        ("# x\n" + '"a\\".b" . ' * 1_000 + "b = 1", "keys of at most 32 parts, got a longer one in line 2"),
        ("a = 1\n" * 100_000, "a configuration of at most 256 KiB, got more"),
        ("\n".join(f"{'a.' * 31}b{i} = 1" for i in range(3_500)), "a configuration, got"),
        ("a = " + "9" * 10_000, "TOML, got "),
        ("a = " + '"' * 100_000, "TOML"),
        ("state = '" + "x.y" * 10_000 + "'", ""),
    ],
)
def test_a_configuration_that_would_take_long_to_read_is_an_error(tmp_path: Path, text: str, said: str):
    """Neither a traceback nor minutes."""
    began = time.monotonic()
    with pytest.raises(FileError) as caught:
        read_config(written(tmp_path, text))
    assert said in str(caught.value)
    assert time.monotonic() - began < 10


def test_a_catalog_is_a_lake_whose_properties_are_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Those of a login in the file, too: no repr has them, and no error."""
    monkeypatch.setenv("LOGIN", "me:canary-1")
    text = SIMPLE.replace('delta = "lake"', 'iceberg = "prod"') + (
        'catalog = { type = "rest", uri = "https://c", credential = "${LOGIN}", token = "canary-2",'
        ' "rest.sigv4-enabled" = "true" }'
    )
    config = read_config(written(tmp_path, text))
    sink = config.pipeline("x").sink
    assert isinstance(sink, LakeSettings)
    assert (sink.lake, sink.catalog["credential"]) == (IcebergLake("prod", is_shared=True), "me:canary-1")
    assert "canary" not in repr(config) + repr(sink)
    hidden = config.redaction.of("true: canary-2 of me:canary-1")
    assert hidden == "true: ... of ${LOGIN}"


def test_a_secret_in_the_query_of_a_catalogs_address_is_hidden_wherever_it_stands(tmp_path: Path):
    """As libraries name what gave no answer: the path and the query of a request."""
    text = SIMPLE.replace('delta = "lake"', 'iceberg = "prod"') + (
        'catalog = { type = "rest", uri = "https://c/?warehouse=shop&Access_Token=canary-1" }'
    )
    redaction = read_config(written(tmp_path, text)).redaction
    said = redaction.of("no answer from /?warehouse=shop&Access_Token=canary-1/v1/config")
    assert said == "no answer from /?warehouse=shop&Access_Token=${lake.catalog.uri}/v1/config"


def test_a_warehouse_is_one_of_iceberg(tmp_path: Path):
    """Beside tables of Delta Lake it would mean nothing, as when `--warehouse` is given with a file that has `delta`."""
    said = "iceberg in [lake] for warehouse, the folder of its tables, got delta"
    file = written(tmp_path, SIMPLE)
    assert said in error_of(lambda: read_config(file, {"lake": {"warehouse": "w"}}).pipeline("x"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('delta = "l"', "tables of Delta Lake have names in catalogs of type hive only, not 'rest'"),
        (
            'iceberg = "p"\nwarehouse = "w"',
            "no other place of tables beside catalog in [lake], got warehouse, which is the folder of a catalog of",
        ),
    ],
)
def test_a_catalog_is_one_of_iceberg_but_for_a_metastore(tmp_path: Path, settings: str, said: str):
    """A folder is another one."""
    text = SIMPLE.replace('delta = "lake"', settings) + 'catalog = { type = "rest", uri = "https://canary" }'
    found = error_of(lambda: read_config(written(tmp_path, text)).pipeline("x"))
    assert said in found
    assert "canary" not in found
