"""The report as a page: all of it in one file that loads nothing, bounded, and nothing of a message is markup."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from cdcavro.lake.account import Account, AccountFile, BatchFacts, Point, RejectReason, Unparsed, Version
from cdcavro.lake.markup import round_marks, time_axis
from cdcavro.lake.report_page import page_of, write_report

HOSTILE = (
    "t<script>alert('\"x\"')</script><!-- --></style></title>&amp;\u202e\x00\x07\ud800\u2028\u3164\ufe0f\u2800 =1+1"
)
BEGAN = datetime(2026, 11, 22, 9, tzinfo=UTC).timestamp()
VOID = {"meta", "br", "wbr"}


class Reader(HTMLParser):
    """Reads a page: its elements must be balanced, and every text and address is kept."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element without contents."""
        self.elements.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        """Check that it ends what is open."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.texts.append(data)

    @property
    def said(self) -> str:
        """All that a reader sees."""
        return " ".join(self.texts)


def account(batches: int, *, apart: float = 10, names: tuple[str, ...] = ("shop.orders", "shop.customers")) -> Account:
    """Return the account of batches that took two seconds each."""
    made = Account()
    for number in range(batches):
        began = BEGAN + number * apart
        counts = {"read": 1000 + number, "written": 998 + number, "rejected": 1, "statements": 1}
        seconds = {"convert": 0.5, "state": 0.01, "rejects": 0.25, "write": 1.24}
        rows = {name: {"c": 5, "u": 3, "d": 1} for name in names}
        rejects = [
            RejectReason("canal", "$.data[*]", "expected an integer, got …", 1, f"a.jsonl line {number}", "got 'x'")
        ]
        made.add(BatchFacts(number, began, began + 2, counts, rows, seconds, rejects=rejects))
        made.note_lag(number, 10 * (batches - number), "messages")
    return made


def page(made: Account) -> Reader:
    """Read the page on an account."""
    return Reader(page_of(made, "state", BEGAN))


def test_what_a_reader_wants_to_know_is_there():
    """Numbers with units, the tables, their versions with what led to them and when, rejects by reason, batches."""
    made = account(3)
    made.add(
        BatchFacts(
            3,
            BEGAN + 30,
            BEGAN + 31,
            {"read": 4, "written": 3, "rejected": 1},
            {"shop.orders": {"t": 1, "r": 7}},
            {"convert": 1.0},
            ["shop.orders: column 'qty' is added"],
            {"shop.customers": "its lake table would change"},
            [
                RejectReason(
                    "canal",
                    "$",
                    "expected JSON, got …",
                    1,
                    "shop partition 0 offset 7",
                    "expected JSON, got 'no message'",
                )
            ],
            [
                Version(
                    "shop.orders",
                    0,
                    2,
                    3,
                    BEGAN + 31,
                    BEGAN + 29,
                    ["column 'qty' added"],
                    "ALTER TABLE orders ADD qty INT",
                )
            ],
        )
    )
    said = page(made).said
    for text in (
        "Messages per second",
        "Lag: messages left to read",
        "Seconds per batch",
        "3,007",
        "column 'qty' added",
        "ALTER TABLE orders ADD qty INT",
        "2026-11-22 09:00:29",
        "expected an integer, got …",
        "a.jsonl line 0",
        "expected JSON, got 'no message'",
        "shop partition 0 offset 7",
        "its lake table would change",
        "shop.orders: column 'qty' is added",
        "Batches 0 to 3",
    ):
        assert text in said, text


@pytest.mark.parametrize("batches", [0, 1, 2, 40, 1_000])
def test_a_page_of_any_number_of_batches_loads_nothing(batches: int):
    """No script, no address, no image; its policy forbids them, too. It is no larger than 512 KiB."""
    text = page_of(account(batches), "state", BEGAN)
    read = Reader(text)
    assert not {"script", "link", "img", "iframe", "object", "base", "form", "a", "image", "use"} & set(read.elements)
    assert not [
        one for one in read.attributes if one[1] in ("href", "src", "srcset", "xlink:href") or one[1].startswith("on")
    ]
    assert not re.search(r"url\(|@import|https?:", text)
    assert ("meta", "content", "default-src 'none'; style-src 'unsafe-inline'") in read.attributes
    assert len(text.encode()) < 512 * 1024
    assert "nan" not in text
    assert "inf" not in text.lower().replace("information", "")


def test_a_page_is_called_by_its_tables_and_begins_with_the_lag():
    """Folders of several pipelines may have one name; what is behind is what a reader asks first."""
    made = account(2, names=("shop.orders", "shop.customers", "shop.items", "shop.big"))
    text = page_of(made, "state", BEGAN)
    assert "<title>cdcavro sync: shop.big, shop.customers, 2 more tables</title>" in text
    assert "<title>cdcavro sync</title>" in page_of(Account(), "state", BEGAN)
    tiles = text.partition('<dl class="tiles">')[2]
    assert tiles.startswith("<div><dt>lag, messages</dt><dd>10</dd></div>")


def test_reasons_of_rejects_are_told_without_options_of_a_command():
    """What came stays as it came, even if it looks like one."""
    made, sentence = Account(), "expected a table given for those that do not (--table), got ' (--table)'"
    made.add(BatchFacts(0, BEGAN, BEGAN + 1, {"read": 1, "rejected": 1}, rejects=[reject("$", sentence)]))
    said = page(made).said
    assert said.count("expected a table given for those that do not, got ' (--table)'") == 2
    assert said.count("--table") == 2


def test_values_kept_as_text_are_told_without_options_of_a_command():
    """The setting of a configuration stays."""
    made = Account(
        unparsed=Unparsed(2, "d.t.a: '1' (a time without a zone needs that of the source: --zone, or zone in [tables])")
    )
    made.add(BatchFacts(0, BEGAN, BEGAN + 1, {"read": 1}, {"d.t": {"c": 1}}))
    assert "such as d.t.a: '1' (a time without a zone needs that of the source: zone in [tables])" in page(made).said


def test_a_type_declared_in_other_letters_is_no_change():
    """Rows declare in small letters what CREATE TABLE declared in capitals; a value of an enum is another one."""
    steps = ["table 't' with 2 columns", "column 'id' is int, and was INT: stored the same way"]
    enum = "column 'e' is enum('a'), and was enum('A'): stored the same way"
    made = Account(versions=[Version("d.t", 1, 1, 0, BEGAN, None, [*steps, enum])])
    said = page(made).said
    assert "was INT" not in said
    assert enum in said


@pytest.mark.parametrize(
    ("path", "markup"),
    [
        ("$.payload.before.column", "<code class=t><bdi>$.payload.before.column</bdi></code>"),
        (
            f"$.{'x' * 40}[*].b<>",
            "<code>"
            + "<wbr>".join(
                f"<span class=t><bdi>{member}</bdi></span>" for member in ("$", f".{'x' * 40}", "[*]", ".b&lt;&gt;")
            )
            + "</code>",
        ),
        (f"$.{'x' * 100}", f"<code><span class=t><bdi>$</bdi></span><wbr><span><bdi>.{'x' * 100}</bdi></span></code>"),
    ],
)
def test_a_path_is_broken_between_its_members_only(path: str, markup: str):
    """On one line if it is short; within a member that is too long for one."""
    made = Account()
    made.add(BatchFacts(0, BEGAN, BEGAN + 1, {"read": 1, "rejected": 1}, rejects=[reject(path, "expected")]))
    text = page_of(made, "state", BEGAN)
    assert markup in text
    assert path in "".join(Reader(text).texts)


def reject(path: str, sentence: str) -> RejectReason:
    """Return a reject with a path and a reason."""
    return RejectReason("canal", path, sentence, 1, "a.jsonl line 1", sentence)


def hostile() -> Account:
    """Return an account in which everything that comes from messages is hostile."""
    made = account(2, names=(HOSTILE, HOSTILE + "2"))
    told = BatchFacts(2, BEGAN + 20, BEGAN + 21, {"read": 1, "rejected": 1}, {HOSTILE: {"c": 1, HOSTILE: 1}})
    told.versions = [Version(HOSTILE, 0, 2, 2, 1e300, -1e300, [HOSTILE], HOSTILE)]
    told.rejects = [RejectReason(HOSTILE, HOSTILE, HOSTILE, 1, HOSTILE, HOSTILE)]
    told.steps, told.waiting, told.seconds = [HOSTILE], {HOSTILE: HOSTILE}, {HOSTILE: 1.0}
    made.add(told)
    return made


def test_nothing_of_a_message_is_markup_or_invisible():
    """Wherever it stands: in names, reasons, places, statements and hints."""
    text = page_of(hostile(), HOSTILE, BEGAN)
    read = Reader(text)
    assert "script" not in read.elements
    assert (read.elements.count("style"), read.elements.count("head"), read.elements.count("title")) == (
        1,
        1,
        1 + 3 * 3,
    )
    assert not [one for one in text if not one.isprintable() and one != "\n"]
    assert read.said.count("alert(") > 10
    assert not re.search("[\u3164\ufe0f\u2800]", text)
    assert "\\u202e\\x00\\x07\\ud800\\u2028\\u3164\\ufe0f\\u2800" in read.said


def test_what_a_state_says_is_in_a_file_that_can_be_read(tmp_path: Path):
    """Written in one step; without lone surrogates, which no file can hold."""
    kept = AccountFile(tmp_path)
    told = BatchFacts(0, BEGAN, BEGAN + 1, {"read": 1}, {HOSTILE: {"c": 1}}, {"write": 1.0})
    kept.add(told)
    write_report(tmp_path, tmp_path / "report.html")
    assert "alert(" in Reader((tmp_path / "report.html").read_text(encoding="utf-8")).said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["account.json", "lake_tables.json", "report.html"]


def test_paper_is_light_and_shows_what_would_scroll():
    """A browser with dark colours prints dark ink, all columns of wide tables and the colours of legends."""
    text = page_of(account(2), "state", BEGAN)
    assert re.findall(r"@media ([^{]*prefers-color-scheme[^{]*)", text) == ["screen and (prefers-color-scheme:dark)"]
    (printed,) = re.findall(r"@media print{(.*)", text)
    assert ".frame{overflow:visible}" in printed
    assert ".legend li::before{print-color-adjust:exact}" in printed


@pytest.mark.slow
def test_a_page_is_bounded_and_says_what_it_leaves_out():
    """5,000 tables with names of 10,000 characters, as many versions, reasons, steps and tables that wait."""
    made = Account()
    names = ["n" * 10_000 + str(i) for i in range(5_000)]
    versions = [Version(name, i, 1, 0, BEGAN, BEGAN, [name] * 50, name) for i, name in enumerate(names)]
    rejects = [RejectReason("canal", name, f"{i} {name}", 1, name, name) for i, name in enumerate(names[:400])]
    counts = {"read": 10_000, "written": 5_000, "rejected": 5_000}
    rows = {name: {"c": i + 1} for i, name in enumerate(names)}
    waiting = dict.fromkeys(names, "w" * 10_000)
    made.add(BatchFacts(0, BEGAN, BEGAN + 1, counts, rows, {"write": 1.0}, names, waiting, rejects, versions))
    text = page_of(made, "state", BEGAN)
    said = Reader(text).said
    assert len(text.encode()) < 2 * 1024 * 1024
    left = sum(range(1, 4_901))
    assert f"4,900 more tables have {left:,} rows." in said
    assert "4,850 older versions are not shown." in said
    assert "4,950 rejects with other reasons are not shown." in said
    assert "4,950 more tables are not shown." in said


def test_a_page_on_a_thousand_batches_takes_no_longer_than_50_milliseconds():
    """Of a processor, the best of five: the machine does other things."""
    made, taken = account(1_000), []
    for _ in range(5):
        begin = time.process_time()
        page_of(made, "state", BEGAN)
        taken.append(time.process_time() - begin)
    assert min(taken) < 0.05


def test_a_pause_is_a_gap_and_not_a_batch_that_took_a_day():
    """Batches before and behind it have their length; marks of both days have their date."""
    made = account(10)
    for number in range(10, 20):
        began = BEGAN + 86_400 + number * 10
        made.add(BatchFacts(number, began, began + 2, {"read": 1}, {}, {"write": 1.0}))
    axis = time_axis(made.points)
    assert axis.gaps == {10}
    widths = [right - left for left, right in axis.slots]
    assert max(widths) < 80
    assert axis.slots[-1][1] == pytest.approx(1000)
    assert {label.partition("<br>")[2] for _, label in axis.marks} == {"2026-11-22", "2026-11-23"}


@pytest.mark.parametrize("length", [0, 0.001, 0.5, 3, 59, 3_601, 90_000, 1e8])
def test_marks_of_times_are_few_and_apart(length: float):
    """Whatever a batch takes; at least two, within the axis."""
    made = Account()
    made.add(BatchFacts(0, BEGAN + 0.3, BEGAN + 0.3 + length, {"read": 1}, {}, {"write": length}))
    axis = time_axis(made.points)
    places = [at for at, _ in axis.marks]
    assert 2 <= len(places) <= 7
    assert places == sorted(places)
    assert all(0 <= at <= 1000.1 for at in places)


@pytest.mark.parametrize("most", [1e-9, 0.003, 0.9, 1, 4, 99, 12_345, 7.1e12])
def test_marks_of_numbers_are_round_and_reach_the_greatest(most: float):
    """Between two and six of them, from 0 on."""
    marks = round_marks(most)
    assert marks[0] == 0
    assert marks[-2] <= most <= marks[-1] * (1 + 1e-9)
    assert 2 <= len(marks) <= 6


def test_no_text_of_an_account_is_markup():
    """Whatever somebody wrote into its file, in every place of it."""
    account = Account(
        counts={"read": 3, "rejected": 2, HOSTILE: 5},
        rows={HOSTILE: {"c": 1, HOSTILE: 3}},
        other_rows={HOSTILE: 2, "c": 1},
        points=[
            Point(i, i, BEGAN + i, BEGAN + i + 1, {HOSTILE: 1, "read": 3}, 1, 1, {HOSTILE: 1.0, "convert": 1.0}, 3)
            for i in range(2)
        ],
        versions=[Version(HOSTILE, 1, 2, 1, BEGAN, BEGAN, [HOSTILE], HOSTILE)],
        version_count=3,
        steps=[(1, HOSTILE)],
        rejects=[RejectReason(HOSTILE, HOSTILE, HOSTILE, 3, HOSTILE, HOSTILE)],
        waiting={HOSTILE: HOSTILE},
        waiting_count=9,
        unit=HOSTILE,
    )
    page = page_of(account, HOSTILE, BEGAN)
    assert not {"script", "img"} & {*Reader(page).elements}
    assert Reader(page).elements.count("style") == 1
    assert page.isascii() or not re.search("[\x00-\x08\ud800-\udfff\u202e]", page)
