"""Protection: no file of a pipeline has a value that is left out or masked, and what is written is what was to be."""

from __future__ import annotations

import hashlib
import hmac
import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from cdcavro.arrow import to_arrow
from cdcavro.cli import main
from cdcavro.errors import FileError, JobError
from cdcavro.lake.placing import rows_batch
from cdcavro.lake.typed_rows import TypedRow, TypedRows
from cdcavro.sync.batches import BatchReport
from cdcavro.sync.config import read_config
from cdcavro.sync.outputs.reject_places import replay
from cdcavro.sync.outputs.topic_records import ConnectPayloads
from cdcavro.sync.protection import Constant, Protection, RowRule, without_values
from cdcavro.sync.reading.checkpoint import Checkpoint
from cdcavro.sync.settings import Chosen, Settings
from cdcavro.table.tables import Tables
from cdcavro.transcoding.mapping import to_changes
from support.local_pipelines import LocalJob, lake_section
from support.messages import canal

TYPES = {"id": "int", "email": "varchar(90)", "card": "varchar(90)", "n": "int"}
# No file but the sources' has any of these.
CANARIES = ("canary", "4111-2222", "987654321")
RULE = RowRule("d.*", ("Card",), {"EMAIL": "sha256", "n": Constant("***")}, salt="pepper")


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., LocalJob]:
    """Make a job of the local runner, whose lake is Delta Lake, or Iceberg."""

    def make(kind: str = "delta", **lake: Any) -> LocalJob:
        return LocalJob(tmp_path / "j", lake_section(kind, tmp_path / "j", **lake))

    return make


def message(type: str, row: dict[str, Any], id: int, **more: Any) -> bytes:
    """Return a message of Canal's about a row of `d.t`; `old` is one row, too."""
    old = [more.pop("old")] if "old" in more else []
    types = more.pop("types", TYPES)
    return canal(type, [row], id=id, old=old, **{"mysqlType": {name: types[name] for name in row}, **more})


def statement(sql: str, id: int, type: str = "ALTER") -> bytes:
    """Return a message of Canal's with a statement."""
    return canal(type, [], id=id, isDdl=True, sql=sql)


def run(made: LocalJob, *rules: RowRule, settings: dict[str, Any] | None = None, **more: Any) -> list[BatchReport]:
    """Run a job whose rows are written by rules, and return the reports of its batches."""
    reports: list[BatchReport] = []
    pipeline = made.pipeline(**more)
    own = replace(pipeline.settings, **{"rules": rules, "rejects_raw": "omit", **(settings or {})})
    replace(pipeline, settings=own).run(once=True, say=reports.append)
    return reports


def digest(text: str, salt: str = "pepper") -> str:
    """Return what `sha256` makes of a text."""
    return hashlib.sha256((salt + text).encode()).hexdigest()


def texts(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a folder but those of its source, each with its text, unpacked."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.is_relative_to(folder / "in"):
            continue
        if path.suffix == ".parquet":
            yield path, repr(pq.read_table(path, partitioning=None).to_pylist())
        elif path.suffix == ".avro":
            with path.open("rb") as file:
                reader = fastavro.reader(file)
                yield path, repr([reader.writer_schema, *reader])
        else:
            yield path, path.read_bytes().decode(errors="replace")


def leaks(folder: Path) -> list[tuple[str, str]]:
    """Return which files have a canary, and which."""
    return [(str(path), one) for path, text in texts(folder) for one in CANARIES if one in text]


def shop() -> list[bytes]:
    """Return messages that have canaries everywhere: rows, keys before a change, misfits, and what cannot be read."""
    row = {"id": "1", "email": "a@canary", "card": "4111-2222", "n": "987654321"}
    return [
        message("INSERT", row, 1),
        message("INSERT", row | {"id": "2", "n": "canary is no number"}, 2),
        message("UPDATE", row | {"email": "b@canary"}, 3, old={"email": "a@canary"}),
        message("UPDATE", {"id": "1", "card": "4111-2222-3"}, 4, old={"card": "4111-2222"}),
        message("INSERT", row | {"id": "3", "email": None}, 5),
        message("DELETE", row | {"id": "3"}, 6),
        message("UPDATE", row | {"id": "4"}, 7, old={"id": "2"}),
        b'{"type":"INSERT","data":"canary 4111-2222"',
        message("INSERT", {"id": "canary"}, 8) + b" canary",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "iceberg", "avro"])
@pytest.mark.parametrize("engine", ["", "off"])
def test_no_sink_has_a_value_that_is_left_out_or_masked(job, tmp_path: Path, monkeypatch, kind: str, engine: str):
    """Nor have registry, state, waiting rows, reports and rejects, whichever way the rows are typed."""
    monkeypatch.setenv("CDCAVRO_ENGINE", engine)
    made = LocalJob(tmp_path / "j", {}) if kind == "avro" else job(kind, changelog=True)
    more: dict[str, Any] = {"avro": {"folder": str(made.folder / "out")}} if kind == "avro" else {}
    more |= {"registry": {"url": f"file:{made.folder / 'registry'}"}}
    made.send(*shop())
    more |= {} if kind == "avro" else {"rejects_table": "ops.rejects"}
    (report,) = run(made, RULE, **more)
    assert (report.counts["read"], report.counts["rejected"]) == (9, 2)
    assert "canary" not in repr(report)
    assert leaks(made.folder) == []
    found = {path.parent.name for path, text in texts(made.folder) if digest("b@canary") in text}
    assert found
    assert not any('"card"' in text or "4111" in text for _, text in texts(made.folder / "registry"))
    if kind != "avro":
        wanted = [(1, digest("b@canary"), "***"), (4, digest("a@canary"), "***")]
        assert made.rows("d.t", "id", "email", "n") == wanted
        assert [raw for (raw,) in made.rows("ops.rejects", "raw")] == [None, None]
        assert [one.name for one in made.table("d.t").columns()] == ["id", "email", "n"]
        assert len(made.rows("d.t", "email", suffix="changes")) == 10


def test_a_leak_is_found(job):
    """Without a rule the test above sees the canaries."""
    made = job()
    made.send(*shop())
    made.run()
    assert {one for _, one in leaks(made.folder)} == {*CANARIES}


SQL = {
    "id": "int",
    "big": "bigint unsigned",
    "small": "tinyint",
    "money": "decimal(12,3)",
    "text": "varchar(90)",
    "raw": "varbinary(20)",
    "day": "date",
    "at": "datetime(6)",
    "stamp": "timestamp(3)",
    "clock": "time",
    "real": "double",
    "single": "float",
    "doc": "json",
    "more": "varchar(9)",
}
SENT = {
    "id": ["1", "-7"],
    "big": ["18446744073709551615", "0", "x"],
    "small": ["-128", "1000"],
    "money": ["1.500", "-0.001", "700", "1.23456"],
    "text": ["", "a", "é" * 100, "\U0001f600"],
    "raw": ["", "\u0000\u00ff", "abc"],
    "day": ["2024-02-29", "0000-00-00"],
    "at": ["2024-02-29 01:02:03.000004", "2024-02-29 00:00:00", "never"],
    "stamp": ["2024-02-29 01:02:03.5"],
    "clock": ["23:59:59", "838:00:00"],
    "real": ["1.5", "-2E+300"],
    "single": ["1.5", "x"],
    "doc": ['{"a": 1}'],
    "more": ["x" * 70, ""],
}
# The text of a value that is masked, whatever type it had.


def _text(name: str, value: Any, misfit: str | None) -> bytes:
    if misfit is not None:
        return misfit.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, Decimal):
        plain = format(value, "f")
        return (plain.rstrip("0").rstrip(".") if "." in plain else plain).encode()
    if name == "stamp":
        return (value.replace(tzinfo=None).isoformat() + "Z").encode()
    return (value.isoformat() if hasattr(value, "isoformat") else str(value)).encode()


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_those_that_were_typed_but_for_what_is_protected(seed: int):
    """Read back by the reader of Arrow: every type, null, misfit and absent column, in rows, before and after, and keys."""
    chance = Random(seed)
    names = [*SQL]
    chance.shuffle(names)
    left_out = set(chance.sample(names[1:], chance.randrange(4))) - {"id"}
    masked = {name for name in names if name not in left_out and chance.random() < 0.5}
    tables, messages = Tables(), []

    def row(least: int) -> dict[str, str | None]:
        some = [name for name in names if name == "id" or chance.random() < 0.8] if least else names
        return {name: None if name != "id" and chance.random() < 0.2 else chance.choice(SENT[name]) for name in some}

    for i in range(12):
        one = row(i)
        op = chance.choice(["INSERT", "UPDATE", "DELETE"])
        old = {name: chance.choice(SENT[name]) for name in one if chance.random() < 0.3}
        more = {"old": old} if op == "UPDATE" else {}
        messages.append(message(op, one, i, types=SQL, **more))
    changes = [to_changes(text, "canal") for text in messages]
    typed = TypedRows(tables).of_batch(changes)
    _assert_protected(tables, typed.rows, left_out, masked)


def _assert_protected(tables: Tables, rows: list[TypedRow], left_out: set[str], masked: set[str]) -> None:
    rules = [
        RowRule(
            "d.t",
            tuple(left_out) or ("nothing",),
            dict.fromkeys(masked, "hmac-sha256"),
            (),
            None,
            "s" if masked else None,
        )
    ]
    protection = Protection(rules)
    batch = rows_batch(list(enumerate(rows)))
    made, _ = protection.rows(batch, tables.tables)
    public = protection.public(tables.tables[0])
    assert [schema.names for schema in public.versions] == [
        schema.names - left_out for schema in tables.tables[0].versions
    ]
    for i, own in enumerate(rows):
        was = to_arrow([own.payload], tables.tables[0].versions[own.version - 1]).to_pylist()[0]
        schema = public.versions[own.version - 1]
        now = to_arrow([made.column("payload")[i].as_py()], schema).to_pylist()[0]
        for image in ("before", "after"):
            assert now.pop(image) == _expected(was.pop(image), left_out, masked)
        assert now == was
        assert made.column("lacks")[i].as_py() == bool(set(own.absent) - left_out)
        key = made.column("key")[i].as_py()
        was_key = to_arrow([own.key], tables.tables[0].versions[own.version - 1], part="key").to_pylist()[0]
        assert to_arrow([key], schema, part="key").to_pylist()[0] == _expected(was_key, left_out, masked)


def _expected(row: dict[str, Any] | None, left_out: set[str], masked: set[str]) -> dict[str, Any] | None:
    if row is None:
        return None
    misfits = dict(row["unparsed"])
    found = {name: value for name, value in row.items() if name not in left_out}
    for name in masked & row.keys():
        if row[name] is not None or name in misfits:
            found[name] = hmac.new(b"s", _text(name, row[name], misfits.get(name)), "sha256").hexdigest()
    found["unparsed"] = [(name, text) for name, text in row["unparsed"] if name not in left_out | masked]
    if "absent" in row:
        found["absent"] = [name for name in row["absent"] if name not in left_out]
    return found


@pytest.mark.slow
def test_a_renamed_column_stays_what_it_was(job):
    """Two that swap their names, too; what is added under a protected name is protected."""
    made = job(changelog=True)
    made.send(message("INSERT", {"id": "1", "email": "a@canary", "card": "4111-2222"}, 1))
    run(made, RULE)
    made.send(
        statement("ALTER TABLE d.t RENAME COLUMN email TO mail", 2),
        statement("ALTER TABLE d.t RENAME COLUMN card TO paper", 3),
        message(
            "INSERT",
            {"id": "2", "mail": "b@canary", "paper": "4111-2222"},
            4,
            types=TYPES | {"mail": "varchar(90)", "paper": "varchar(90)"},
        ),
        statement("ALTER TABLE d.t ADD COLUMN email int DEFAULT 987654321, ADD COLUMN x int", 5),
        message(
            "INSERT",
            {"id": "3", "mail": "c@canary", "paper": "4111-2222", "email": "987654321", "x": "1"},
            6,
            types=TYPES | {"mail": "varchar(90)", "paper": "varchar(90)", "email": "int", "x": "int"},
        ),
    )
    run(made, RULE)
    assert [path for path, _ in leaks(made.folder) if "/lake/" in path] == []
    wanted = [(1, digest("a@canary")), (2, digest("b@canary")), (3, digest("c@canary"))]
    assert made.rows("d.t", "id", "mail") == wanted
    assert made.rows("d.t", "id", "email")[-1] == (3, digest("987654321"))


@pytest.mark.slow
def test_a_masked_column_keeps_its_mask_when_its_type_changes_and_the_table_is_renamed(job):
    """A number becomes a text, under another name: rows before and after have the mask, and so has another table."""
    made, rule, types = job(), RowRule("d.t", (), {"n": "sha256"}, salt="pepper"), TYPES | {"m": "varchar(20)"}
    made.send(message("INSERT", {"id": "1", "n": "987654321"}, 1))
    run(made, rule)
    made.send(
        statement("ALTER TABLE d.t RENAME COLUMN n TO m", 2),
        statement("ALTER TABLE d.t MODIFY COLUMN m varchar(20)", 3),
        message("INSERT", {"id": "2", "m": "canary"}, 4, types=types),
        statement("RENAME TABLE d.t TO d.other", 5, "RENAME"),
        message("INSERT", {"id": "3", "m": "canary"}, 6, types=types, table="other"),
    )
    run(made, rule)
    assert leaks(made.folder) == []
    rows = [row for table in ("d.t", "d.other") for row in made.rows(table, "id", "m")]
    assert {(2, digest("canary")), (3, digest("canary"))} <= set(rows)


@pytest.mark.slow
def test_what_may_be_a_protected_column_under_another_name_stops_the_pipeline(job):
    """A list of columns says that one is gone and another is there, and no statement that it was renamed."""
    made = job()
    made.send(message("INSERT", {"id": "1", "email": "a@canary"}, 1))
    run(made, RULE)
    made.send(message("INSERT", {"id": "2", "mail": "b@canary"}, 2, types=TYPES | {"mail": "varchar(90)"}))
    for _ in range(2):
        with pytest.raises(
            JobError, match=r"d\.t has the new column 'mail' since 'email' disappeared, .* Name it in leave_out"
        ):
            run(made, RULE)
    assert leaks(made.folder) == []
    run(made, RowRule("d.*", ("card",), {"email": "sha256", "mail": "sha256", "n": Constant("***")}, salt="pepper"))
    assert made.rows("d.t", "id", "mail") == [(1, None), (2, digest("b@canary"))]
    assert leaks(made.folder) == []


@pytest.mark.slow
def test_a_new_column_is_written_where_it_is_no_other_one_or_is_said_to_be_plain(job):
    """One that stood beside the protected one is not it; and `plain` says so of another."""
    made = job()
    types = TYPES | {"x": "int", "mail": "varchar(90)"}
    made.send(
        message("INSERT", {"id": "1", "email": "a@canary"}, 1),
        message("INSERT", {"id": "2", "email": "a@canary", "x": "5"}, 2, types=types),
        message("INSERT", {"id": "3", "x": "6"}, 3, types=types),
    )
    run(made, RULE)
    assert made.rows("d.t", "id", "x") == [(1, None), (2, 5), (3, 6)]
    made.send(message("INSERT", {"id": "4", "x": "6", "mail": "open"}, 4, types=types))
    run(made, RowRule("d.*", ("card",), {"email": "sha256"}, ("ma*",), "pepper"))
    assert made.rows("d.t", "id", "mail")[-1] == (4, "open")


def test_a_statement_of_another_lane_is_waited_for(job):
    """It says that the column was renamed, and its file is read by another task: the column has its mask."""
    made = job()
    made.more["source"] = {"files": str(made.folder / "in"), "most": 9}
    made.send(
        message("INSERT", {"id": "1", "email": "a@canary"}, 1),
        message("INSERT", {"id": "2", "mail": "b@canary"}, 5, types=TYPES | {"mail": "varchar(90)"}),
    )
    made.send(statement("ALTER TABLE d.t CHANGE COLUMN email mail varchar(90)", 3))
    run(made, RULE)
    assert leaks(made.folder) == []
    assert (2, digest("b@canary")) in made.rows("d.t", "id", "mail")


def test_a_renamed_column_that_is_gone_without_a_statement_is_not_forgotten(job):
    """What stands in its place may be it, under a third name."""
    made, types = job(), TYPES | {"mail": "varchar(90)", "post": "varchar(90)"}
    made.send(
        message("INSERT", {"id": "1", "email": "a@canary"}, 1),
        statement("ALTER TABLE d.t RENAME COLUMN email TO mail", 2),
        message("INSERT", {"id": "2", "mail": "b@canary"}, 3, types=types),
        message("INSERT", {"id": "3", "post": "c@canary"}, 4, types=types),
    )
    with pytest.raises(JobError, match="the new column 'post' since 'mail' disappeared"):
        run(made, RULE)
    assert leaks(made.folder) == []


def test_messages_that_state_no_columns_may_bring_none_that_nobody_knows(job):
    """A row without the protected column may have it under the new name."""
    made = job()

    def row(i: int, **row: Any) -> bytes:
        own = {
            "database": "d",
            "table": "t",
            "type": "insert",
            "ts": i,
            "xid": i,
            "commit": True,
            "data": {"id": i, **row},
        }
        return json.dumps(own | {"primary_key": [i], "primary_key_columns": ["id"]}).encode()

    made.send(row(1, email="a@canary"), row(2, mail="b@canary"))
    with pytest.raises(JobError, match="the new column 'mail' in a message that states no columns"):
        run(made, RULE, format="maxwell")
    assert leaks(made.folder) == []


def test_a_key_can_be_masked_and_not_be_left_out(job):
    """Rows are found by the digest of their key; a constant would make them one row."""
    made, rule = job(), RowRule("d.t", (), {"id": "hmac-sha256"}, secret="s")
    made.send(*[message("INSERT", {"id": str(i), "n": "1"}, i) for i in (1, 2, 3)])
    made.send(
        message("UPDATE", {"id": "2", "n": "5"}, 4, old={"n": "1"}),
        message("DELETE", {"id": "3", "n": "1"}, 5),
        message("UPDATE", {"id": "9", "n": "1"}, 6, old={"id": "1"}),
    )
    run(made, rule)
    keys = {text: hmac.new(b"s", text.encode(), "sha256").hexdigest() for text in ("2", "9")}
    assert made.rows("d.t", "id", "n") == sorted([(keys["2"], 5), (keys["9"], 1)])
    for other in (RowRule("*", ("ID",)), RowRule("*", (), {"id": Constant("x")})):
        new = LocalJob(made.folder / f"new{len(other.mask)}", {"delta": str(made.folder / "lake2")})
        new.send(message("INSERT", {"id": "1"}, 1))
        with pytest.raises(
            JobError, match=r"'id' is a column of the key of d\.t and cannot be (left out|masked by a constant)"
        ):
            run(new, other)


@pytest.mark.parametrize(
    ("type", "values"),
    [
        ("decimal(38,0)", ("12345678901234567890123456789012345678", "12345678901234567890123456789012345679")),
        ("decimal(38,30)", ("12345678.000000000000000000000000000001", "12345678.000000000000000000000000000002")),
    ],
)
def test_keys_that_differ_in_their_last_digit_are_masked_as_different_rows(job, type: str, values: tuple[str, str]):
    """All digits count, also beyond the 28 that Python calculates with."""
    made, rule = job(), RowRule("d.t", (), {"id": "hmac-sha256"}, secret="s")
    made.send(*[message("INSERT", {"id": one}, i, types={"id": type}) for i, one in enumerate(values)])
    run(made, rule)
    assert len(made.rows("d.t", "id")) == 2


def test_the_first_rule_that_fits_counts_and_others_are_as_they_were(job):
    """A table without a rule is written as ever; a rule fits in any case of letters."""
    made = job()
    made.send(message("INSERT", {"id": "1", "card": "x"}, 1), message("INSERT", {"id": "1", "card": "x"}, 1, table="u"))
    run(made, RowRule("D.*T", (), {"card": Constant("first")}), RowRule("t", ("card",)))
    assert (made.rows("d.t", "card"), made.rows("d.u", "card")) == ([("first",)], [("x",)])


@pytest.mark.parametrize(
    "rules", [[], [RowRule("d.t", ("card",))], [RowRule("d.t", (), {"card": "sha256"}, salt="pepper")]]
)
def test_a_text_of_the_second_column_of_a_name_is_protected_as_its_values_are(job, rules: list[RowRule]):
    """It is called by its field there."""
    made, int_types = job(), dict.fromkeys(("id", "card", "b"), "int")
    made.send(
        message("INSERT", {"id": "1", "card": "1"}, 1, types=int_types),
        statement("ALTER TABLE d.t RENAME COLUMN card TO b, ADD COLUMN card INT", 2),
        message("INSERT", {"id": "2", "card": "4111-2222", "b": "x"}, 3, types=int_types),
    )
    (report,) = run(made, *rules)
    assert report.unparsed.count == 2
    assert report.unparsed.example == ("d.t.b: …" if rules else "d.t.b: 'x'")
    assert any("4111-2222" in text for _, text in texts(made.folder)) == (not rules)
    kept = [dict(row) for (row,) in made.rows("d.t", "_cdc_unparsed") if row]
    # A column that was renamed stays protected under the name that the rule has.
    assert kept == ([] if rules else [{"b": "x", "card_x_2": "4111-2222"}])


def test_rejects_keep_their_bytes_only_if_it_is_said(job):
    """Their reasons show no value in either case, and a misfit that ends the pipeline shows none."""
    made = job()
    made.send(message("INSERT", {"id": "canary"}, 1))
    for raw in ("keep", "omit"):
        own = LocalJob(made.folder / raw, {"delta": str(made.folder / raw / "lake")})
        own.send(message("INSERT", {"id": "1", "n": "canary"}, 1))
        (report,) = run(own, RULE, settings={"rejects_raw": raw}, tables={"on_misfit": "reject", "zone": "UTC"})
        assert report.counts["rejected"] == 1
        (line,) = [json.loads(text) for path, text in texts(own.folder / "state" / "rejects")]
        assert (line["raw"] is None, "canary" in json.dumps(line)) == (raw == "omit", False)
        assert line["reason"] == "canal: $.after.n: expected int, got string …"
    with pytest.raises(Exception, match=r"expected int, got …") as caught:
        run(made, RULE, tables={"on_misfit": "error", "zone": "UTC"})
    assert "canary" not in str(caught.value)


def test_rejects_without_bytes_have_reasons_without_values(job):
    """As well where no column is protected: what is left out is not quoted."""
    made = job()
    made.send(message("INSERT", {"id": "1", "n": "canary"}, 1))
    (report,) = run(made, tables={"on_misfit": "reject", "zone": "UTC"})
    assert report.counts["rejected"] == 1
    ((_, text),) = texts(made.folder / "state" / "rejects")
    assert "canary" not in text
    assert json.loads(text)["reason"] == "canal: $.after.n: expected int, got string …"


def test_rules_do_not_change_while_rows_wait_that_others_made(job):
    """These have other columns than they would have now."""
    made = job()
    made.send(message("INSERT", {"id": "1", "email": "a@canary"}, 1))
    made.send(message("INSERT", {"id": "2", "email": "b@canary"}, 2))
    # What stands in the way of its table's folder keeps the rows back.
    (made.folder / "lake").mkdir()
    (made.folder / "lake" / "d").write_text("no folder")
    reports = run(made, RULE)
    assert [*reports[-1].waiting] == ["d.t"]
    assert leaks(made.folder) == []
    assert any(digest("b@canary") in text for path, text in texts(made.folder / "state" / "waiting"))
    made.send(message("INSERT", {"id": "3"}, 3))
    with pytest.raises(JobError, match=r"pending rows in .*waiting were made before \[\[table\]\] was changed"):
        run(made, RowRule("d.*", ("email",)))
    masked = {**RULE.mask, "EMAIL": Constant("*")}
    for other in (
        RowRule("d.*", ("Card",), masked),
        RowRule("d.*", ("Card",), RULE.mask, salt="pepper", where="id > 1"),
    ):
        with pytest.raises(JobError, match=r"before .* was changed"):
            run(made, other)
    (made.folder / "lake" / "d").unlink()
    run(made, RULE)
    assert made.rows("d.t", "id", "email") == [(1, digest("a@canary")), (2, digest("b@canary")), (3, None)]


def test_the_first_batch_goes_on_by_its_rules_if_it_was_killed_while_its_rows_wait(
    job, monkeypatch: pytest.MonkeyPatch
):
    """No batch before it says by which rules they were made."""
    made = job()
    made.send(message("INSERT", {"id": "1", "email": "a@canary"}, 1))
    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "commit", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            run(made, RULE, merge_every=2)
    with pytest.raises(JobError, match=r"before .* was changed"):
        run(made, RowRule("d.*", ("email",)), merge_every=2)
    run(made, RULE, merge_every=2)
    run(made, RULE)
    assert made.rows("d.t", "id", "email") == [(1, digest("a@canary"))]


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ('leave_out = ["a"]\nmask = { a = "sha256" }', "'a' is not"),
        ('mask = { a = "sha265" }\nsalt = "x"', "the mask of 'a' is 'sha265', which is none: did you mean sha256?"),
        ('mask = { a = "md5" }', "there are sha256, hmac-sha256 and"),
        ('mask = { a = "sha256" }', "a mask by sha256 needs a salt"),
        ('mask = { a = "hmac-sha256" }\nsalt = "x"', "a mask by hmac-sha256 needs a secret"),
        ('leave_out = ["a"]\nsalt = "x"', "a salt is for a mask by sha256, and there is none"),
        (
            "",
            "has leave_out, mask, where, key, properties, partition, cluster, include_statements, exclude_statements or form, or it",
        ),
        ('where = "a like b"', "where is a column, an operator and a constant"),
        ('where = "a = b"', "where compares with a number or with a text in single quotes, not with 'b'"),
        ('where = "a is null 5"', "nothing stands behind is null, not '5'"),
        ('leaveout = ["a"]', "has no setting 'leaveout': did you mean leave_out?"),
        ('leave_out = "a"', "leave_out in [[table]] must be a list, got a text"),
        ('mask = { a = { constnt = "x" } }', "constnt"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_with_its_line(tmp_path: Path, stated: str, said: str):
    """Before anything starts."""
    path = tmp_path / "sync.toml"
    head = 'state = "s"\nrejects_raw = "omit"\n[source]\nfiles = "in"\n[lake]\ndelta = "lake"\n'
    path.write_text(f'{head}[[table]]\nmatch = "ok"\nleave_out = ["x"]\n[[table]]\nmatch = "d.t"\n{stated}\n')
    with pytest.raises(FileError) as caught:
        read_config(path)
    assert said in str(caught.value)
    assert any(f"line {number}:" in str(caught.value) for number in (10, 11, 12, 13))


def test_secrets_of_rules_are_shown_nowhere_and_rejects_need_a_word(tmp_path: Path, monkeypatch):
    """Neither by the configuration nor by the pipeline; without a word on rejects nothing starts."""
    monkeypatch.setenv("SALT", "canary-salt")
    path = tmp_path / "sync.toml"
    head = 'state = "s"\n{}[source]\nfiles = "in"\n[lake]\ndelta = "lake"\n[[table]]\nmatch = "t"\n'
    rule = (
        'mask = { a = "sha256", b = "hmac-sha256", c = { constant = "***" } }\nsalt = "${SALT}"\nsecret = "${SALT}"\n'
    )
    path.write_text(head.format('rejects_raw = "keep"\n') + rule)
    config = read_config(path)
    made = config.pipeline("x")
    assert made.settings.rules[0].salt == "canary-salt"
    assert "canary" not in repr(config) + repr(made) + repr(made.settings.rules)
    assert "canary" not in str(config.redaction.of("salted with canary-salt"))
    path.write_text(head.format("") + rule)
    with pytest.raises(FileError, match='say rejects_raw = "omit"'):
        read_config(path).pipeline("x")
    with pytest.raises(ValueError, match="rejects_raw is keep, omit, encrypt, not 'encrpyt'"):
        Settings(rejects_raw="encrpyt")


def test_sentences_show_no_values():
    """What is quoted, and numbers behind what came."""
    assert without_values("expected 'a', got 'x1' at 7") == "expected …, got … at …"
    assert without_values(None) is None
    limit = "message: $: expected at most 67108864 bytes, got "
    assert without_values(f"{limit}73400320") == f"{limit}73400320"
    assert without_values(f"a: $: expected no {limit}73400320") == f"a: $: expected no {limit}…"


def test_another_process_masks_alike(monkeypatch, tmp_path: Path):
    """A task of Spark's has the rules by pickle, and the secrets in them."""
    monkeypatch.setenv("SALT", "pepper")
    path = tmp_path / "sync.toml"
    path.write_text(
        'state = "s"\nrejects_raw = "omit"\n[source]\nfiles = "in"\n[lake]\ndelta = "lake"\n'
        '[[table]]\nmatch = "d.t"\nmask = { email = "sha256" }\nsalt = "${SALT}"\n'
    )
    settings = read_config(path).pipeline("x").settings
    sent: Protection = pickle.loads(pickle.dumps(settings.protection))
    tables = Tables()
    typed = TypedRows(tables).of_batch([to_changes(message("INSERT", {"id": "1", "email": "a@canary"}, 1), "canal")])
    for protection in (settings.protection, sent):
        made, _ = protection.rows(rows_batch(list(enumerate(typed.rows))), tables.tables)
        schema = protection.public(tables.tables[0]).schema
        row = to_arrow(made.column("payload"), schema).to_pylist()[0]["after"]
        assert row["email"] == digest("a@canary")
    # Records with Kafka Connect's schemas have what these have.
    connect = ConnectPayloads.of([schema], is_key=False)
    assert digest("a@canary").encode() in connect.translate(1, made.column("payload")[0].as_py())
    assert sent.layout == settings.protection.layout != Protection().layout == ""


def test_a_column_that_gets_a_protected_name_waits_where_its_type_would_change(job):
    """Older rows have a number, which nobody said to be masked, and no lake makes a text of it: nothing is written."""
    made = job()
    made.send(message("INSERT", {"id": "1", "x": "987654321"}, 1, types=TYPES | {"x": "int"}))
    run(made, RULE)
    made.send(
        statement("ALTER TABLE d.t RENAME COLUMN x TO n", 2),
        message("INSERT", {"id": "2", "n": "987654320"}, 3),
    )
    reports = run(made, RULE)
    assert "which the lake cannot make string" in reports[-1].waiting["d.t"]


def test_rejects_without_their_bytes_are_not_read_again(tmp_path: Path):
    """The command says why."""
    path = tmp_path / "sync.toml"
    path.write_text('state = "s"\nrejects_raw = "omit"\n[source]\nfiles = "in"\n[lake]\ndelta = "lake"\n')
    done = CliRunner().invoke(main, ["replay", "--config", str(path)])
    assert done.exit_code == 2
    assert "expected rejects with the bytes of their messages, got none" in done.stderr


def test_rejects_without_their_bytes_that_are_read_again_are_rejects_again(job):
    """Whoever moves them by hand loses nothing, and nothing stops."""
    made = job()
    made.send(*shop())
    run(made, RULE)
    folder = made.folder / "state"
    assert len(replay(folder / "rejects", folder / "replay")) == 1
    (report,) = run(made, RULE)
    assert (report.counts["read"], report.counts["rejected"]) == (2, 2)


@pytest.mark.parametrize("rule", [RowRule("d.*", ("email",)), RowRule("d.*", where="n > 1")])
def test_a_table_that_is_excluded_stops_nothing_by_a_rule_that_fits_it(job, rule: RowRule):
    """Nothing of it is written, so its key may be left out, and its rows need not say enough for a condition."""
    made = job()
    made.send(
        message("INSERT", {"id": "1", "email": "a@canary", "n": "2"}, 1),
        message("INSERT", {"email": "b@canary", "n": "many"}, 2, table="bad", pkNames=["email"]),
    )
    (report,) = run(made, rule, settings={"chosen": Chosen(exclude=("bad",))})
    assert (report.counts["written"], report.counts["left out"]) == (1, 1)


def test_whoever_writes_rows_knows_of_a_table_that_it_was_dropped():
    """Its late rows must take no column from the table that has its name then, though no version came with that."""
    rows, protection = TypedRows(Tables()), Protection([RULE])
    rows.of_batch([to_changes(message("INSERT", {"id": "1", "email": "x"}, 1), "canal")])
    (table,) = rows.tables.tables
    assert not protection.public(table).is_gone
    rows.of_batch([to_changes(statement("DROP TABLE t", 2, "ERASE"), "canal")])
    assert (table.is_gone, protection.public(table).is_gone) == (True, True)
