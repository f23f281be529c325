"""Functions that check a part of a writer's payload and append it as the reader's.

A part whose bytes are the reader's as they are needs only its check, and is copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cdcavro.avro.buffer import Buffer
from cdcavro.avro.decoder import Decoder
from cdcavro.avro.skip import blocks, check_name, record_check
from cdcavro.errors import MessageError, PayloadError
from cdcavro.exact.jsontext import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.avro.skip import Check

    Write = Callable[[Decoder, Buffer], None]

MAX_TRANSLATED: Final = 64 << 20


class Same(NamedTuple):
    """A part whose bytes are the reader's as they are; `check` reads and checks them."""

    check: Check


class Other(NamedTuple):
    """A part that `write` reads, checks and appends as the reader's."""

    write: Write


def written(part: Same | Other) -> Write:
    """Return the function that appends a part: one that is the same for both is copied."""
    if isinstance(part, Other):
        return part.write
    check = part.check

    def write(source: Decoder, out: Buffer) -> None:
        start = source.position
        check(source)
        out.write_raw(source.slice(start, source.position))

    return write


def of_nothing(part: Same | Other) -> Same | Other:
    """Return a part of data without bytes, which always become the same, as one that is worked out once."""
    made: list[bytes] = []

    def write(_source: Decoder, out: Buffer) -> None:
        if not made:
            first = Buffer()
            written(part)(Decoder(b""), first)
            made.append(bounded(first).taken())
        out.write_raw(made[0])

    return Same(lambda _source: None) if isinstance(part, Same) else Other(write)


def indexed(at: int, write: Write) -> Write:
    """Return a function that appends the index of a union's branch, then the branch."""

    def write_branch(source: Decoder, out: Buffer) -> None:
        out.write_long(at)
        write(source, out)

    return write_branch


def branches_write(writes: Sequence[Write]) -> Write:
    """Return a function that reads the index of a writer's branch and appends the branch."""
    return lambda source, out: writes[source.read_index(len(writes), "a branch")](source, out)


def items_write(write: Write, *, is_weightless: bool) -> Write:
    """Return a function that appends an array, from that for an item, which may have no bytes."""

    def write_items(source: Decoder, out: Buffer) -> None:
        at = 0
        try:
            for count in blocks(source, is_weightless=is_weightless):
                out.write_long(count)
                for _ in range(count):
                    write(source, out)
                    bounded(out)
                    at += 1
        except MessageError as error:
            error.below(f"/{at}")
            raise
        out.write_long(0)

    return write_items


def entries_write(write: Write) -> Write:
    """Return a function that appends a map, from that for a value; no name may occur twice."""

    def write_entries(source: Decoder, out: Buffer) -> None:
        names: set[str] = set()
        name = ""
        try:
            for count in blocks(source):
                out.write_long(count)
                for _ in range(count):
                    name = source.read_string()
                    check_name(name, names)
                    names.add(name)
                    out.write_string(name)
                    write(source, out)
                    bounded(out)
        except MessageError as error:
            error.below(f"/{escape(name)}")
            raise
        out.write_long(0)

    return write_entries


def field_runs(parts: Sequence[tuple[str, int | None, Same | Other]], end: int) -> list[tuple[int, Write]]:
    """Return, for a record's fields, functions with the place of what they write; `end` is that of what is left out.

    Fields that are the same for both and stand one behind the other in both are copied at once.
    """
    runs: list[tuple[int, Write]] = []
    run: list[tuple[str, Check]] = []
    start = 0
    for name, place, part in [*parts, ("", None, None)]:
        if run and (place != start + len(run) or not isinstance(part, Same)):
            runs.append((start, written(Same(record_check(run)))))
            run = []
        if isinstance(part, Other) and place is not None:
            runs.append((place, _named(name, part.write)))
        elif isinstance(part, Same) and place is not None:
            start = start if run else place
            run.append((name, part.check))
        elif isinstance(part, Same):
            runs.append((end, _checked(record_check([(name, part.check)]))))
    return runs


def _checked(check: Check) -> Write:
    def write(source: Decoder, _out: Buffer) -> None:
        check(source)

    return write


def _named(name: str, write: Write) -> Write:
    def write_named(source: Decoder, out: Buffer) -> None:
        try:
            write(source, out)
        except MessageError as error:
            error.below(f"/{escape(name)}")
            raise

    return write_named


def fields_write(runs: Sequence[tuple[int, Write]], defaults: Sequence[bytes]) -> Write:
    """Return a function that appends a record: what runs write in their places, and defaults in all others."""
    by_default = sum(map(len, defaults))

    def write(source: Decoder, out: Buffer) -> None:
        pieces = list(defaults)
        size = by_default
        for place, write_run in runs:
            piece = Buffer()
            write_run(source, piece)
            size += len(piece)
            check_size(size)
            pieces[place] = piece.taken()
        for piece_ in pieces:
            out.write_raw(piece_)

    return write


def bounded(out: Buffer) -> Buffer:
    """Return what has been written so far. Raises `PayloadError` if that is absurdly long."""
    check_size(len(out))
    return out


def check_size(size: int) -> None:
    """Raise `PayloadError` for an absurd number of bytes under the reader's schema."""
    # A default can be long, and an item of few bytes can lack many fields.
    if size > MAX_TRANSLATED:
        raise PayloadError(f"at most {MAX_TRANSLATED} bytes under the reader's schema", "more")
