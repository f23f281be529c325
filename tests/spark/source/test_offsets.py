"""Offsets of a stream of files: each file once, in whatever order files come, and a bounded size."""

from __future__ import annotations

import json
from random import Random

import pytest

from cdcavro.errors import FileError, JobError
from cdcavro.spark.source.listing import FoundFile
from cdcavro.spark.source.source import Offset


def kept(offset: Offset) -> Offset:
    """Return an offset as Spark keeps it and gives it back."""
    return Offset.of(json.loads(json.dumps(offset.json())))


def names(files: list[FoundFile]) -> list[str]:
    """Return the names of files."""
    return [file.name for file in files]


def test_an_offset_comes_back_as_it_was():
    """From the JSON in the checkpoint; equal offsets are equal texts, as Spark compares them."""
    first = Offset().next_offset(Offset(), [FoundFile("/a", 1, 5), FoundFile("/b", 2, 4)], None)
    assert first.json() == {
        "version": 1,
        "before": "",
        "files": [{"name": "/b", "size": 2}, {"name": "/a", "size": 1}],
    }
    again = kept(first).next_offset(first, [FoundFile("/b", 2, 4), FoundFile("/a", 1, 5)], None)
    assert again.json() == first.json()
    assert kept(kept(first)).json() == first.json()


def test_the_oldest_files_come_first_and_no_more_than_are_wanted():
    """Those of one time in the order of their names."""
    files = [FoundFile("/a", 1, 9), FoundFile("/b", 1, 3), FoundFile("/d", 1, 5), FoundFile("/c", 1, 5)]
    start, found = Offset(), []
    for _ in range(4):
        end = start.next_offset(start, files, 2)
        found.append(names(end.since(start)))
        start = kept(end)
    assert found == [["/b", "/c"], ["/d", "/a"], [], []]


@pytest.mark.parametrize("seed", range(20))
def test_each_file_comes_once_whatever_happens(seed):
    """Files come in any order with times of any age, and go; queries restart, skip plans and offsets, and commit late."""
    random = Random(seed)
    there: dict[str, FoundFile] = {}
    told = base = start = Offset()
    came, taken = [], []
    for number in range(200):
        for name in [f"/{number}/{i}" for i in range(random.choice([0, 0, 1, 3]))]:
            there[name] = FoundFile(name, random.randrange(1000), random.randrange(1000))
            came.append(name)
        told = told.next_offset(base, there.values(), random.choice([None, 1, 2]))
        if random.random() < 0.3:
            continue  # Spark does not use it.
        end = kept(told)
        if end.json() != start.json():
            batch = names(end.since(start))
            assert batch == names(kept(end).since(kept(start)))
            taken += batch
            start = end
            if random.random() < 0.8:
                told = base = end
            # Otherwise a plan needs no rows, so that nobody asks for parts; the batch may be committed later.
            elif random.random() < 0.5:
                base = end
        if random.random() < 0.1:
            told = base = start
        for name in random.sample(taken, min(len(taken), random.choice([0, 0, 1]))):
            there.pop(name, None)
    while (end := told.next_offset(base, there.values(), None)).json() != start.json():
        taken += names(end.since(start))
        told = base = start = end
    assert sorted(taken) == sorted(came)


def test_what_nobody_asked_for_is_named_again():
    """Spark may have taken an offset or not: what is between it and the next is right either way."""
    first = Offset().next_offset(Offset(), [FoundFile("/b", 1, 2), FoundFile("/c", 1, 3)], 1)
    second = first.next_offset(Offset(), [FoundFile("/a", 1, 1), FoundFile("/b", 1, 2), FoundFile("/c", 1, 3)], 1)
    assert names(second.since(first)) == ["/a"]
    assert names(second.since(Offset())) == ["/b", "/a"]


def test_a_file_that_has_changed_is_an_error():
    """It was read as it was, so that what was added would be passed over."""
    start = Offset().next_offset(Offset(), [FoundFile("/a", 1)], None)
    for offset in (start, start.next_offset(start, [FoundFile("/a", 1), FoundFile("/b", 1)], None)):
        with pytest.raises(FileError) as caught:
            kept(offset).next_offset(offset, [FoundFile("/a", 2), FoundFile("/b", 1)], None)
    expected = "the file as it was when it was read: a file is complete when it appears"
    assert str(caught.value) == f"/a: expected {expected}, got one of 2 bytes, another size"


@pytest.mark.slow
def test_an_offset_grows_by_sixteen_characters_for_each_file():
    """Names stand in the offset of their batch only."""
    files = [FoundFile(f"/some/long/path/of/a/file/{i:06}.jsonl.gz", i, i) for i in range(100_000)]
    start = Offset().next_offset(Offset(), files, None)
    more = start.next_offset(start, [*files, FoundFile("/new", 1, 1)], None)
    assert len(json.dumps(more.json())) < 16 * 100_000 + 200
    assert names(kept(more).since(kept(start))) == ["/new"]


def test_what_is_gone_is_forgotten_but_not_all_at_once():
    """A folder that is not there for a while, as one of a network, does not come again."""
    files = [FoundFile("/a", 1), FoundFile("/b", 1)]
    start = Offset().next_offset(Offset(), files, None)
    assert start.next_offset(start, [], None).json() == start.json()
    later = start.next_offset(start, [FoundFile("/b", 1), FoundFile("/c", 1)], None)
    assert len(later.before) == 1
    assert names(later.next_offset(later, [*files, FoundFile("/c", 1)], None).since(later)) == ["/a"]


@pytest.mark.parametrize(
    "json",
    [
        {"version": 2, "before": "", "files": []},
        {"logOffset": 0},
        {"version": 1},
        {"version": 1, "before": "?", "files": []},
        {"version": 1, "before": "", "files": 7},
        {"version": 1, "before": "", "files": ["/a"]},
        7,
    ],
)
def test_an_offset_of_another_source_is_an_error(json):
    """As where a checkpoint is used again for another stream."""
    with pytest.raises(JobError, match="the checkpoint is of another source"):
        Offset.of(json)
