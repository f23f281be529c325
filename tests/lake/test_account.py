"""The account of a job: it adds up whatever is put together, is bounded, and counts a batch once."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import UTC
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from cdcavro.change.model import Change
from cdcavro.errors import FileError
from cdcavro.lake import TypedRows
from cdcavro.lake.account import (
    Account,
    AccountFile,
    BatchFacts,
    LakeMark,
    LakeTable,
    NewVersions,
    RejectReason,
    Version,
    bounded_name,
    lacking_sentence,
    lake_key,
    note_mark,
    read_account,
    table_of,
)
from cdcavro.lake.report_page import page_of
from cdcavro.sync.secrets import FromVariable, Redaction
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.shop_state import as_came


def facts(number: int, began: float | None = None, **members: object) -> BatchFacts:
    """Return what a batch of ten messages did, one of which was rejected."""
    begin = 1_700_000_000 + number * 10 if began is None else began
    counts = {"read": 10, "written": 9, "rejected": 1}
    own = {"operations": {"d.t": {"c": 9}}, "seconds": {"convert": 1.5, "write": 0.5}, "rejects": [reject("a")]}
    return BatchFacts(number, begin, begin + 2, counts, **{**own, **members})


def reject(reason: str, count: int = 1) -> RejectReason:
    """Return rejects with a reason."""
    return RejectReason("canal", "$", reason, count, f"a.jsonl line {count}", reason)


@pytest.mark.slow
def test_nothing_is_lost_where_old_batches_are_put_together():
    """10,000 batches are 300 points, of which none is much more than the others but the last, which are whole."""
    account = Account()
    for number in range(10_000):
        account.add(facts(number))
        account.note_lag(number, number, "messages")
    assert account.counts == {"read": 100_000, "written": 90_000, "rejected": 10_000}
    assert account.rows == {"d.t": {"c": 90_000}}
    points = account.points
    assert len(points) == 300
    assert [(points[0].first, points[-1].last)] == [(0, 9_999)]
    assert all(one.last + 1 == other.first for one, other in pairwise(points))
    assert sum(point.counts["read"] for point in points) == 100_000
    assert sum(point.busy for point in points) == pytest.approx(20_000)
    assert max(point.last - point.first for point in points) < 100
    assert all(point.first == point.last for point in points[-60:])
    assert [point.lag for point in points] == [point.last for point in points]


def test_batches_before_a_pause_and_behind_it_stay_apart():
    """A day between two runs is no time that batches took."""
    account = Account()
    for number in range(1_000):
        account.add(facts(number, 1_700_000_000 + number * 3 + number // 100 * 86_400))
    assert max(point.ended - point.began for point in account.points) < 3_600


def test_a_batch_that_is_run_again_is_counted_once(tmp_path: Path):
    """As after a kill between the account and the end of the batch; another process goes on with the file."""
    first = AccountFile(tmp_path)
    first.add(facts(0))
    first.add(facts(1))
    again = AccountFile(tmp_path)
    again.add(facts(1))
    again.add(facts(2))
    again.note_lag(2, 7, "files")
    account = read_account(tmp_path)
    assert account.counts["read"] == 30
    assert [(point.first, point.lag) for point in account.points] == [(0, None), (1, None), (2, 7)]
    assert account.unit == "files"


@pytest.mark.slow
def test_an_account_is_bounded_whatever_messages_say():
    """Names of 10,000 characters, 20,000 tables, as many reasons, versions and steps; what is left out is counted."""
    account = Account()
    for number in range(20):
        names = [f"{'é' * 10_000}{number * 1000 + i}" for i in range(1000)]
        versions = [
            Version(name, number * 1000 + i, 1, number, 1.0, None, [name] * 30, name) for i, name in enumerate(names)
        ]
        told = BatchFacts(
            number,
            number,
            number + 1,
            {"read": 1000, "written": 0, "rejected": 1000},
            {name: {"c": 1} for name in names},
            {"write": 1.0},
            names,
            dict.fromkeys(names, "x" * 10_000),
            [reject(name) for name in names[:200]],
            versions,
        )
        account.add(told)
    assert (len(account.rows), account.other_rows) == (10_000, {"c": 10_000})
    assert (account.version_count, len(account.versions), len(account.steps)) == (20_000, 1_000, 200)
    assert sum(one.count for one in account.rejects) + account.other_rejects == 20_000
    assert len(msgspec.json.encode(account)) < 20_000_000


def test_rows_that_are_written_without_a_batch_change_no_number():
    """Those that waited for one of the next batches, where there was none; the batch that comes is counted."""
    account = Account()
    account.add(facts(0, waiting={"d.t": "why"}))
    account.note_written(1, ["d.t: column 'b' is added"], {})
    assert (account.waiting, account.waiting_count, account.last) == ({}, 0, 0)
    account.add(facts(1))
    assert (account.counts["read"], account.steps) == (20, [(1, "d.t: column 'b' is added")])


def test_the_reason_with_the_most_rejects_stays():
    """Among many that come once."""
    account = Account()
    for number in range(50):
        account.add(facts(number, rejects=[reject("often"), *(reject(f"{number}, {i}") for i in range(100))]))
    assert (account.rejects[0].reason, account.rejects[0].count) == ("often", 50)


def test_names_that_are_cut_stay_apart():
    """And nothing in them is invisible."""
    names = [bounded_name(f"{'a' * 10_000}{i}\u202e") for i in range(50)]
    assert len(set(names)) == 50
    assert all(len(name) == 200 and name.isprintable() for name in names)


def test_a_version_that_became_another_is_there_once():
    """Nothing was written with it."""
    account = Account()
    account.add(facts(0, versions=[Version("t", 0, 1, 0, 1.0, None, ["one"])]))
    account.add(
        facts(
            1, versions=[Version("t", 0, 1, 1, 2.0, None, ["one", "two"]), Version("t", 0, 2, 1, 2.0, None, ["three"])]
        )
    )
    assert [(one.version, one.steps) for one in account.versions] == [(1, ["one", "two"]), (2, ["three"])]
    assert account.version_count == 2


@pytest.mark.parametrize("text", ["", "{", '{"points":1}', '{"format":2}', "\udc00"])
def test_a_file_that_is_no_account_is_an_error(tmp_path: Path, text: str):
    """Which names it."""
    (tmp_path / "account.json").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(FileError, match=r"account\.json: expected"):
        AccountFile(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"t":1}', "[" * 5_000])
def test_a_file_that_has_no_lake_tables_is_an_error(tmp_path: Path, text: str):
    """Which names it."""
    (tmp_path / "lake_tables.json").write_text(text)
    with pytest.raises(FileError, match=r"lake_tables\.json: expected"):
        AccountFile(tmp_path)


@pytest.mark.slow
def test_batches_of_any_length_add_up():
    """Seconds, too, and lags that are not known of all."""
    random.seed(7)
    account, seconds = Account(), 0.0
    for number in range(2_000):
        taken = random.random() * 100
        seconds += taken
        account.add(facts(number, seconds={"write": taken}))
        if number % 3 == 0:
            account.note_lag(number, 5, "messages")
    assert sum(point.busy for point in account.points) == pytest.approx(seconds, rel=1e-4)
    assert account.points[0].lag == 5


def versions(every: Sequence[Sequence[Change]], size: int) -> list[Version]:
    """Return the versions that are told where messages come in batches of a size; the last word on each counts."""
    maker, watch = TypedRows(Tables(zone=UTC)), NewVersions()
    found: dict[tuple[int, int], Version] = {}
    for number, i in enumerate(range(0, len(every), size)):
        batch = maker.of_batch([list(changes) for changes in every[i : i + size]])
        told = watch.find(
            maker.tables,
            batch.learned,
            number,
            float(number),
            lambda table: str(table.versions[0].table.table),
            lambda name: not name.table.startswith("nopk"),
        )
        found |= {(one.number, one.version): one for one in told}
    return list(found.values())


def test_the_versions_of_the_shop_are_told_with_what_led_to_them():
    """However the messages are cut into batches; a table that is not wanted is not among them."""
    every = as_came("canal")
    whole, cut = versions(every, len(every)), versions(every, 7)
    orders = [one for one in cut if one.table == "orders"]
    assert [one.version for one in orders] == list(range(1, len(orders) + 1))
    assert len(orders) >= 9
    assert all(one.statement and one.since is not None for one in orders)
    (renamed,) = [one for one in orders if one.steps == ["column 'note' renamed to 'remark'"]]
    assert renamed.statement == "ALTER TABLE orders RENAME COLUMN note TO remark"
    (event,) = [change.event_time for changes in every for change in changes if change.ddl == renamed.statement]
    assert renamed.since == event / 1e6
    assert "nopk" not in {one.table for one in cut}
    assert {(one.table, one.version, one.statement, one.since) for one in whole} == {
        (one.table, one.version, one.statement, one.since) for one in cut
    }


def test_a_watch_that_starts_later_tells_only_what_is_new():
    """As a run that goes on with a state."""
    every = [list(changes) for changes in as_came("canal")]
    maker = TypedRows(Tables(zone=UTC))
    maker.of_batch(every[:30])
    watch = NewVersions(maker.tables.tables, maker.tables.edits)
    assert watch.find(maker.tables, [], 1, 1.0, lambda _: "t", lambda _: True) == []
    before = {(table.number, schema.version) for table in maker.tables.tables for schema in table.versions}
    behind = maker.of_batch(every[30:])
    found = watch.find(maker.tables, behind.learned, 2, 2.0, lambda _: "t", lambda _: True)
    after = {(table.number, schema.version) for table in maker.tables.tables for schema in table.versions}
    assert {(one.number, one.version) for one in found} - before == after - before
    assert len(found) < len(after)


T = TableName("d", None, "t")
MARK = LakeMark("", "one", 5, 5)


@pytest.mark.parametrize(
    ("mark", "lacks"),
    [
        (MARK, None),
        (MARK._replace(found=9), None),
        (MARK._replace(found=4), 3),
        (MARK._replace(found=-1), 3),
        (MARK._replace(created="two"), 3),
        # What is not known is no reason to say anything.
        (MARK._replace(created=None, found=None), None),
        (MARK._replace(created="two", found=1, is_new=True), None),
    ],
)
def test_a_lake_table_that_is_another_or_older_lacks_rows_from_then_on(mark: LakeMark, lacks: int | None):
    """It is said once, and known until nothing from before can be missing."""
    known: dict[str, LakeTable] = {}
    assert note_mark(known, T, MARK, 3) is None
    assert (note_mark(known, T, mark, 4) is None) == (lacks is None)
    assert note_mark(known, T, mark._replace(found=None, is_new=False), 5) is None
    assert [(table.batch, table.lacks) for table in known.values()] == [(5, lacks)]
    assert note_mark(known, T, mark._replace(is_new=True), 6) is None
    assert [table.lacks for table in known.values()] == [None]
    assert note_mark(known, T, mark._replace(is_new=True, is_empty=True), 7) is None
    assert known == {}


def test_a_version_that_is_not_known_is_at_least_the_one_that_was():
    """Who writes by turns may not know it; of another table nothing was known."""
    known: dict[str, LakeTable] = {}
    for mark in (MARK, MARK._replace(version=None, found=None)):
        note_mark(known, T, mark, 3)
    assert [table.version for table in known.values()] == [5]
    note_mark(known, T, MARK._replace(created="two", version=None), 4)
    assert [table.version for table in known.values()] == [None]


def test_a_command_takes_no_name_for_an_option():
    """Also behind the dashes, the name is one word."""
    name = TableName("-f", None, "-x y")
    assert "`cdcavro sync reset -- '-f.-x y'` and" in lacking_sentence(name, "", 3)
    assert "`cdcavro sync reset f.-x` and" in lacking_sentence(TableName("f", None, "-x"), "", 3)


@pytest.mark.parametrize(
    "key", ["", "[]", "t", "null", '["d",null,"t"]', '["d",null,1,""]', '["d", null, "t", ""]', "[" * 5_000]
)
def test_what_is_no_name_of_a_lake_table_is_ignored(tmp_path: Path, key: str):
    """Nobody wrote it here, and the rest of the account is as good as before."""
    lake = {key: ["one", 5, 3, 2], lake_key(T, ""): ["one", 5, 3, 2]}
    # As it was while it had no file of its own, and as it is.
    for name, stated in ("account.json", {"format": 1, "lake": lake}), ("lake_tables.json", lake):
        (tmp_path / name).write_text(json.dumps(stated))
        assert list(read_account(tmp_path).lacking) == [T]
        (tmp_path / "account.json").unlink(missing_ok=True)
    AccountFile(tmp_path).forget_lake([T])
    assert read_account(tmp_path).lake == {}


def test_a_page_has_no_secret_that_a_lake_table_is_called_by(tmp_path: Path):
    """Whoever reads the account does not know what is secret, nor who forgets other tables."""
    name, other = TableName("secret", None, "t"), TableName("secret", None, "u")
    redaction = Redaction([FromVariable("secret.{table}", "${SEC}.{table}", {"SEC": "secret"})])
    account = AccountFile(tmp_path, redaction.of)
    for one in (name, other):
        note_mark(account.lake, one, MARK, 3)
        note_mark(account.lake, one, MARK._replace(found=1), 4)
    account.add(facts(0))
    assert "secret" not in (tmp_path / "account.json").read_text()
    AccountFile(tmp_path).forget_lake([other])
    page = page_of(read_account(tmp_path), "state", 0)
    assert "cdcavro sync reset ${SEC}.t" in page
    assert "secret" not in page
    assert "SEC}.u" not in page


@pytest.mark.slow
def test_lake_tables_are_bounded_and_any_name_can_be_in_a_command(tmp_path: Path):
    """Names come from messages."""
    known: dict[str, LakeTable] = {}
    name = TableName("d", "s", "a b'; $(x) `y`\u202e")
    assert table_of(lake_key(name, "changes")) == (name, "changes")
    note_mark(known, name, MARK, 3)
    said = note_mark(known, name, MARK._replace(found=1), 4)
    assert said is not None
    assert """reset 'd.s.a b'"'"'; $(x) `y`""" in said
    note_mark(known, TableName("d", None, "t" * 1_000), MARK, 3)
    for i in range(10_010):
        note_mark(known, TableName("d", None, str(i)), MARK, 3)
    assert len(known) == 10_000
    account = AccountFile(tmp_path)
    account.lake.update(known)
    account.add(facts(0))
    AccountFile(tmp_path).forget_lake([name])
    assert len(AccountFile(tmp_path).lake) == 9_999
    AccountFile(tmp_path).forget_lake()
    assert read_account(tmp_path).lake == {}
