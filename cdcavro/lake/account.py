"""The account of a job: what became of its messages since its first batch, in bounded space.

Old batches are put together, so an account of a year has no more points than one of an hour. Names, reasons and
statements come from messages: their number and their length are bounded. The account is in a file beside the job's
state, which is replaced after each batch.
"""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import Struct, field, structs

from cdcavro.change.model import DDL
from cdcavro.errors import FileError, number_of, visible
from cdcavro.lake.job_state import replace_file
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.history import time_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from cdcavro.change.model import Change
    from cdcavro.table.history import Table
    from cdcavro.table.tables import Tables

NAME: Final = "account.json"
# The lake tables by their true names, which may be secret: nobody is shown this file.
LAKE_NAME: Final = "lake_tables.json"
_FORMAT: Final = 1
_POINTS: Final = 300
# How many of the last batches are left as they are.
_RECENT: Final = 60
_TABLES: Final = 10_000
_VERSIONS: Final = 1_000
_STEPS: Final = 200
_REASONS: Final = 200
_WAITING: Final = 200
_NAME: Final = 200
# Between two batches is a pause if the time is this many times that of a batch, and a minute more.
_PAUSE: Final = 10
_MINUTE: Final = 60
_TEXT: Final = 300
_STEPS_EACH: Final = 12
# How long the name of a lake table is that is remembered.
_KEY: Final = 1_000
_GONE: Final = "is not there"
_OTHER: Final = "was made anew or restored"


class RejectReason(Struct, array_like=True):
    """Rejects with one format, path and reason."""

    format: str
    path: str
    reason: str
    count: int
    # Where one of them is, and the reason of that one.
    place: str = ""
    example: str = ""


class Unparsed(Struct):
    """Values that their columns' types cannot carry: how many are kept as text, and one with its table and column."""

    count: int = 0
    example: str = ""

    def __add__(self, other: Unparsed) -> Unparsed:
        """Return both together, with the first example."""
        return Unparsed(self.count + other.count, self.example or other.example)

    @property
    def sentence(self) -> str:
        """A sentence about them; empty if there are none."""
        kept = number_of(self.count, "value that its type cannot carry is/values that their types cannot carry are")
        return f"{kept} text in unparsed, such as {self.example}" if self.count else ""


class Version(Struct):
    """A version of a table. Times are in seconds since the epoch."""

    # What the table is called in the lake, and its number.
    table: str
    number: int
    version: int
    # The batch that brought the version, and when that was.
    batch: int
    at: float
    # Since when the version holds, as the source says.
    since: float | None
    # What led to the version, and the statement if one did.
    steps: list[str]
    statement: str = ""


class LakeMark(NamedTuple):
    """What tells that a lake table is the one whose rows were written, and not another or an older one."""

    # What its name ends with, one of `lakes.SUFFIXES`.
    suffix: str
    # What was made up when it was created; None if that is not known.
    created: str | None
    # A number of its newest version, which grows with each change; None if that is not known.
    version: int | None
    # The same before this run wrote it; None if that is not known, or was said.
    found: int | None = None
    # Whether no row from before can be missing in it, and whether it has none.
    is_new: bool = False
    is_empty: bool = False


class LakeTable(Struct, array_like=True):
    """What a lake table was when its rows were written last."""

    # As `LakeMark` has it.
    created: str | None
    version: int | None
    # The batch of the rows.
    batch: int
    # The last batch whose rows may be missing in it; None if none are.
    lacks: int | None = None
    # What the table is called, and why rows may be missing, as it may be shown; None if that was not said yet.
    shown: tuple[str, str] | None = None

    def lacks_now(self, mark: LakeMark) -> int | None:
        """Return the last batch whose rows may be missing, now that the lake table has a mark."""
        is_other = None not in (self.created, mark.created) and self.created != mark.created
        is_older = self.version is not None and mark.found is not None and mark.found < self.version
        return self.batch if is_other or is_older else self.lacks


class BatchFacts(Struct):
    """What a batch did."""

    number: int
    # In seconds since the epoch.
    began: float
    ended: float
    # The messages by what became of them.
    counts: dict[str, int]
    # The rows by operation, by table.
    operations: dict[str, dict[str, int]] = {}
    # How long the parts of the batch took.
    seconds: dict[str, float] = {}
    # How lake tables changed.
    steps: list[str] = []
    # The tables whose rows wait, and why.
    waiting: dict[str, str] = {}
    rejects: list[RejectReason] = []
    versions: list[Version] = []
    unparsed: Unparsed = field(default_factory=Unparsed)


class Point(Struct):
    """One batch, or several successive ones."""

    # The numbers of the first and the last batch.
    first: int
    last: int
    # In seconds since the epoch.
    began: float
    ended: float
    # The messages by what became of them.
    counts: dict[str, int]
    # How many rows there were.
    rows: int
    # The greatest number of tables in one batch.
    tables: int
    # How long the parts of the batches took.
    seconds: dict[str, float]
    # How much was left to read behind the last batch of which that is known.
    lag: int | None = None

    @property
    def busy(self) -> float:
        """How many seconds the batches took."""
        return sum(self.seconds.values())


class Account(Struct):
    """What became of all messages."""

    format: int = 1
    # The messages by what became of them.
    counts: dict[str, int] = {}
    # The rows by operation, by table; and those of tables beyond 10,000.
    rows: dict[str, dict[str, int]] = {}
    other_rows: dict[str, int] = {}
    points: list[Point] = []
    # The newest versions of tables, and how many there ever were.
    versions: list[Version] = []
    version_count: int = 0
    # The newest changes of lake tables, each with its batch.
    steps: list[tuple[int, str]] = []
    # By count; and how many rejects have other reasons.
    rejects: list[RejectReason] = field(default_factory=list)
    other_rejects: int = 0
    # Tables whose rows wait, and why; and how many there are.
    waiting: dict[str, str] = {}
    waiting_count: int = 0
    unparsed: Unparsed = field(default_factory=Unparsed)
    # What a lag counts.
    unit: str = "messages"
    # Lake tables as `lake_key` names them, in a file of their own; those beyond 10,000 are not remembered.
    lake: dict[str, LakeTable] = {}

    @property
    def lacking(self) -> dict[TableName, str]:
        """Why rows that were written may be missing in the lake tables of tables."""
        found = [(*table_of(key), one.lacks) for key, one in self.lake.items() if one.lacks is not None]
        return {name: lacking_sentence(name, suffix, batch) for name, suffix, batch in found}

    @property
    def last(self) -> int:
        """The number of the last batch, -1 if there was none."""
        return self.points[-1].last if self.points else -1

    def add(self, facts: BatchFacts) -> None:
        """Add a batch, unless it is there already: then it was run again, and did the same."""
        if facts.number <= self.last:
            return
        _count(self.counts, facts.counts)
        for name, operations in facts.operations.items():
            label = bounded_name(name)
            is_room = label in self.rows or len(self.rows) < _TABLES
            _count(self.rows.setdefault(label, {}) if is_room else self.other_rows, operations)
        rows = sum(sum(operations.values()) for operations in facts.operations.values())
        counts, tables = dict(facts.counts), len(facts.operations)
        ends = facts.number, facts.number, facts.began, facts.ended
        self.points.append(Point(*ends, counts, rows, tables, dict(facts.seconds)))
        _thin_out(self.points)
        self._add_versions(facts.versions)
        self._add_rejects(facts.rejects, facts.counts.get("rejected", 0))
        self.unparsed += Unparsed(facts.unparsed.count, bound_text(facts.unparsed.example))
        self.note_written(facts.number, facts.steps, facts.waiting)

    def note_written(self, batch: int, steps: list[str], waiting: dict[str, str]) -> None:
        """Note how lake tables changed, and which do not take their rows."""
        self.steps = [*self.steps, *((batch, bound_text(step)) for step in steps[-_STEPS:])][-_STEPS:]
        self.waiting_count = len(waiting)
        self.waiting = {bounded_name(name): bound_text(reason) for name, reason in list(waiting.items())[:_WAITING]}

    def note_lag(self, batch: int, lag: int, unit: str) -> None:
        """Note how much was left to read behind a batch."""
        point = next((one for one in reversed(self.points) if one.first <= batch), None)
        if point is not None and point.last == batch:
            point.lag, self.unit = lag, unit

    def _add_versions(self, versions: list[Version]) -> None:
        known = {(one.number, one.version): i for i, one in enumerate(self.versions)}
        self.version_count += max(0, len(versions) - _VERSIONS)
        for one in versions[-_VERSIONS:]:
            place = known.get((one.number, one.version))
            own = Version(
                bounded_name(one.table),
                one.number,
                one.version,
                one.batch,
                one.at,
                one.since,
                _first_steps(one.steps),
                bound_text(one.statement),
            )
            if place is None:
                self.versions.append(own)
                self.version_count += 1
            else:
                # Nothing was written with it, so it could become another.
                self.versions[place] = own
        del self.versions[:-_VERSIONS]

    def _add_rejects(self, rejects: list[RejectReason], count: int) -> None:
        """Add the `count` rejects of a batch; those whose reason is not listed are only counted."""
        known = {(one.format, one.path, one.reason): one for one in self.rejects}
        for one in rejects:
            own = RejectReason(
                bounded_name(one.format), bound_text(one.path), bound_text(one.reason), 0, "", bound_text(one.example)
            )
            found = known.setdefault((own.format, own.path, own.reason), own)
            found.place = found.place or bound_text(one.place)
            found.count += one.count
        self.other_rejects += count - sum(one.count for one in rejects)
        self.rejects = sorted(known.values(), key=lambda one: -one.count)
        self.other_rejects += sum(one.count for one in self.rejects[_REASONS:])
        del self.rejects[_REASONS:]


def lake_key(name: TableName, suffix: str) -> str:
    """Return what an account calls a lake table of a table.

    >>> lake_key(TableName("shop", None, "orders"), "changes")
    '["shop",null,"orders","changes"]'
    """
    return json.dumps([name.database, name.schema, name.table, suffix], ensure_ascii=False, separators=(",", ":"))


def table_of(key: str) -> tuple[TableName, str]:
    """Return the table of a lake table, and what the name of the lake table ends with. Raises `MsgspecError`."""
    database, schema, table, suffix = msgspec.json.decode(key, type=tuple[str | None, str | None, str, str])
    return TableName(database, schema, table), suffix


def _is_key(key: str) -> bool:
    with suppress(msgspec.MsgspecError, UnicodeError):
        return lake_key(*table_of(key)) == key
    return False


def note_mark(known: dict[str, LakeTable], name: TableName, mark: LakeMark, batch: int) -> str | None:
    """Note what a lake table was when rows up to a batch were written; say if rows from before may be missing since then."""
    key = lake_key(name, mark.suffix)
    before = known.pop(key, None)
    if mark.is_empty or len(key) > _KEY or len(known) >= _TABLES:
        return None
    if before is None or mark.is_new:
        known[key] = LakeTable(mark.created, mark.version, batch)
        return None
    lacks = before.lacks_now(mark)
    created = before.created if mark.created is None else mark.created
    # A version that is not known now is at least the one that was known, unless the table is another one.
    version = before.version if mark.version is None and lacks == before.lacks else mark.version
    known[key] = LakeTable(created, version, batch, lacks)
    return None if lacks is None or lacks == before.lacks else lacking_sentence(name, mark.suffix, lacks)


def label_of(name: TableName) -> str:
    """Return the name of a lake table for people."""
    return ".".join(part for part in (name.database, name.schema, name.table) if part is not None)


def lacking_sentence(name: TableName, suffix: str, batch: int, *, is_gone: bool = False) -> str:
    """Return why rows up to a batch may be missing in a lake table, and what brings them back."""
    what, why, label = "changelog" if suffix else "lake table", _GONE if is_gone else _OTHER, label_of(name)
    # What begins like an option is none behind two dashes.
    command = f"cdcavro sync reset {'-- ' if label.startswith('-') else ''}{quote(label)}"
    return (
        f"its {what} {why}, so rows up to batch {batch} may be missing: `{command}` and a new snapshot bring them back"
    )


def bounded_name(name: str) -> str:
    """Return a name that can be printed, of at most 200 characters; different names stay different.

    >>> len(bounded_name("a" * 10_000))
    200
    """
    text = bound_text(name[: _NAME + 1], _NAME + 1)
    if len(name) <= _NAME and len(text) <= _NAME:
        return text
    digest = f"... ({len(name):,} characters, {hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:12]})"
    return text[: _NAME - len(digest)] + digest


def bound_text(text: str, most: int = _TEXT) -> str:
    r"""Return a text, cut if it is long, in which all that cannot be seen is escaped.

    >>> bound_text("a\u202eb")
    'a\\u202eb'
    """
    return visible(text if len(text) <= most else text[:most] + "...")


def _first_steps(steps: list[str]) -> list[str]:
    left = len(steps) - _STEPS_EACH
    return [*map(bound_text, steps[:_STEPS_EACH]), *([f"... and {left:,} more"] if left > 0 else [])]


def _count(sums: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        sums[name] = sums.get(name, 0) + count


def is_pause(one: Point, other: Point) -> bool:
    """Return whether much more time passed between two points than their batches took."""
    count = one.last - one.first + other.last - other.first + 2
    usual = (one.ended - one.began + other.ended - other.began) / count
    return other.began - one.ended > _MINUTE + _PAUSE * usual


def _thin_out(points: list[Point]) -> None:
    """Put neighbours together, those with the fewest batches first, while there are too many points."""
    while len(points) > _POINTS:
        old = range(len(points) - _RECENT - 1)
        i = min(old, key=lambda i: (is_pause(points[i], points[i + 1]), points[i + 1].last - points[i].first))
        points[i : i + 2] = [_merge_points(points[i], points[i + 1])]


def _merge_points(one: Point, other: Point) -> Point:
    counts, seconds = dict(one.counts), dict(one.seconds)
    _count(counts, other.counts)
    for part, taken in other.seconds.items():
        seconds[part] = round(seconds.get(part, 0) + taken, 3)
    return Point(
        one.first,
        other.last,
        one.began,
        other.ended,
        counts,
        one.rows + other.rows,
        max(one.tables, other.tables),
        seconds,
        one.lag if other.lag is None else other.lag,
    )


class NewVersions:
    """Finds new versions of tables; `tables` are those so far, and `edits` is how often they were edited."""

    def __init__(self, tables: Sequence[Table] = (), edits: int = 0) -> None:
        self._edits = edits
        self._known = {table.number: list(table.steps) for table in tables}

    def find(
        self,
        tables: Tables,
        learned: Sequence[Change],
        batch: int,
        now: float,
        label: Callable[[Table], str],
        is_wanted: Callable[[TableName], bool],
    ) -> list[Version]:
        """Return the versions of wanted tables that are new since the last call; `learned` is what led to them."""
        if tables.edits == self._edits:
            return []
        self._edits = tables.edits
        makers = {time_of(change): change for change in learned}
        found: list[Version] = []
        for table in tables.tables:
            known = self._known.get(table.number, [])
            if known == table.steps or not is_wanted(table.schema.table):
                continue
            self._known[table.number] = list(table.steps)
            for i, (schema, steps) in enumerate(zip(table.versions, table.steps, strict=True)):
                if i < len(known) and known[i] == steps:
                    continue
                maker = makers.get(table.starts[i])
                since = None if maker is None or maker.event_time is None else maker.event_time / 1e6
                statement = "" if maker is None or maker.op not in DDL else maker.ddl or ""
                own = label(table), table.number, schema.version, batch, now, since, list(steps), statement
                found.append(Version(*own))
        return found


class AccountFile:
    """The account in the folder of a job's state; one thread adds batches, another one lags.

    `hide` returns what it is called with, without what must not be shown. Raises `FileError` if the file is not what
    `add` wrote.
    """

    def __init__(self, folder: Path, hide: Callable[[Any], Any] = lambda added: added) -> None:
        self._hide = hide
        self._path = folder / NAME
        self._account = read_account(folder)
        self._lock = threading.Lock()

    @property
    def waiting(self) -> dict[str, str]:
        """The tables that refused their rows when they were last written, and why."""
        return dict(self._account.waiting)

    @property
    def lake(self) -> dict[str, LakeTable]:
        """The lake tables, which whoever writes them may change before what is noted next."""
        return self._account.lake

    def forget_lake(self, names: Collection[TableName] | None = None) -> None:
        """Forget the lake tables of tables, by default of all: whatever they lack, nobody is told."""
        with self._lock:
            gone = [key for key in self._account.lake if names is None or table_of(key)[0] in names]
            for key in gone:
                del self._account.lake[key]
            if gone:
                self._write()

    def add(self, facts: BatchFacts) -> None:
        """Add a batch that is written completely; a batch that is run again is added once."""
        with self._lock:
            self._account.add(self._hide(facts))
            self._show_lacking()
            self._write()

    def note_lag(self, batch: int, lag: int, unit: str) -> None:
        """Note how many messages or files (`unit`) were left to read behind a batch."""
        with self._lock:
            self._account.note_lag(batch, lag, unit)
            self._write()

    def note_written(self, batch: int, steps: list[str], waiting: dict[str, str]) -> None:
        """Note what became of rows that waited and were written without a new batch."""
        with self._lock:
            self._account.note_written(batch, self._hide(steps), self._hide(waiting))
            self._show_lacking()
            self._write()

    def _show_lacking(self) -> None:
        """Note what may be shown of lake tables that lack rows: whoever reads the account knows no secrets."""
        for key, one in self._account.lake.items():
            if one.lacks is not None and one.shown is None:
                name, suffix = table_of(key)
                label, why = self._hide([label_of(name), lacking_sentence(name, suffix, one.lacks)])
                one.shown = label, why

    def _write(self) -> None:
        # A batch that is not in the account is run again, and notes the same lake tables.
        replace_file(self._path.with_name(LAKE_NAME), msgspec.json.encode(self._account.lake).decode())
        replace_file(self._path, msgspec.json.encode(structs.replace(self._account, lake={})).decode())


def read_account(folder: Path) -> Account:
    """Return the account in the folder of a job's state, an empty one if there is none. Raises `FileError`."""
    account: Account = _read(folder / NAME, Account) or Account()
    if account.format != _FORMAT:
        raise FileError(str(folder / NAME), f"an account in format {_FORMAT}", f"one in format {account.format}")
    # Before they had a file of their own, they were in the account.
    lake: dict[str, LakeTable] | None = _read(folder / LAKE_NAME, dict[str, LakeTable])
    account.lake = {key: one for key, one in (account.lake if lake is None else lake).items() if _is_key(key)}
    return account


def _read(path: Path, kind: Any) -> Any:
    """Return what a file has, None if it is not there."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FileError(str(path), "the account of a job", str(error)) from error
