"""Chunks to blocks and blocks to lines: the same as message by message, whatever lies where."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.avro.container import Block, Framing, PackedBlock, read_frames
from cdcavro.errors import FileError, MessageError, PayloadError
from cdcavro.exact import jsontext
from cdcavro.files import block_codec
from cdcavro.files.block_codec import MOST_FAULTS, BlockDecoder, BlockRun, ChunkEncoder, group_blocks, sync_marker
from cdcavro.files.lines import Chunk
from cdcavro.files.streams import open_shared_input
from cdcavro.wire.format import Format
from cdcavro.wire.formats import get_format
from support.messages import goldens, shop_canal, shop_debezium
from support.strategies import texts

CANAL = get_format("canal")
PLAIN = Framing("null", b"\xff" * 16)
GOOD = shop_canal()[:5]
LINES = st.lists(
    st.sampled_from(
        [*GOOD, b"", b"\r", b"{", b"\xff", b'{"type":"INSERT","data":{}}', GOOD[0] + b"\r", b'{"type":"X","a":-0}']
    ),
    max_size=12,
)


def plainly(lines):
    """Convert line by line: payloads, and the sentences of faults with their lines."""
    payloads, faults = [], []
    for number, line in enumerate(lines, 1):
        try:
            payloads.append(CANAL.encode(line))
        except MessageError as error:
            faults.append((number, str(error)))
    return payloads, faults


def decoded(payloads, count, writer=CANAL.schema, format="canal"):
    """Decode a block: the lines, how many, and the error's sentence."""
    lines, found = [], 0
    frame = PackedBlock(count, 0, 0, len(payloads), payloads)
    try:
        for pieces, some in BlockDecoder(format, writer, PLAIN, "x.avro")(BlockRun((frame,))):
            lines += pieces
            found += some
    except PayloadError as error:
        return b"".join(lines), found, str(error)
    return b"".join(lines), found, None


@given(LINES, st.booleans())
def test_a_chunk_becomes_what_its_lines_become_one_by_one(lines, is_ended):
    """The same payloads in the same order, the same sentences at the same lines."""
    raw = b"\n".join(lines) + (b"\n" if is_ended and lines else b"")
    lines = [line.raw for line in Chunk(raw).lines()]
    payloads, expected = plainly(lines)
    *some, (pieces, tally) = ChunkEncoder("canal", PLAIN)(Chunk(raw))
    faults = [(line.number, str(error)) for _, part in some for error, line in part.faults]
    assert faults == expected
    assert (tally.done, tally.lines) == (len(payloads), len(lines))
    whole = b"".join(PLAIN.pack(Block(b"".join(payloads), len(payloads)))) if payloads else b""
    assert b"".join(pieces) == whole


def test_faults_come_in_parts_of_bounded_size():
    """A file of nothing but empty lines is not held in memory as errors."""
    parts = list(ChunkEncoder("canal", PLAIN)(Chunk(b"\n" * (MOST_FAULTS * 2 + 5))))
    assert [len(tally.faults) for _, tally in parts] == [MOST_FAULTS, MOST_FAULTS, 5, 0]
    assert parts[2][1].faults[-1][1].number == parts[-1][1].lines == MOST_FAULTS * 2 + 5


def test_the_beginning_of_a_line_that_is_too_long_is_no_message(monkeypatch):
    """Though it would be one by itself: white space is what follows."""
    monkeypatch.setattr(jsontext, "MAX_LENGTH", 100_000)
    chunk = Chunk(GOOD[0] + b"\n" + GOOD[1] + b" " * 70_000, b" " * 10, 40_000)
    some, (_, tally) = ChunkEncoder("canal", PLAIN)(chunk)
    ((error, line),) = some[1].faults
    assert (tally.done, tally.lines, line.number) == (1, 2, 2)
    assert error.reason == f"expected at most 100000 bytes, got {len(GOOD[1]) + 110_010}"


@given(st.lists(st.sampled_from([*shop_canal()[:20], *goldens("canal")]), max_size=12))
def test_a_block_becomes_what_its_payloads_become_one_by_one(messages):
    """With extras and without, in any order."""
    payloads = [CANAL.encode(message) for message in messages]
    expected = b"".join(CANAL.decode(payload) + b"\n" for payload in payloads)
    assert decoded(b"".join(payloads), len(payloads)) == (expected, len(payloads), None)


def test_messages_with_extras_stand_among_others():
    """A line that was begun before its extras were found leaves nothing behind."""
    debezium = get_format("debezium")
    messages = [*shop_debezium(), b'{"op":"c","ts_ms":1,"x":[1.20]}'] * 2
    payloads = [debezium.encode(message) for message in messages]
    lines, count, error = decoded(b"".join(payloads), len(payloads), debezium.schema, "debezium")
    assert (count, error) == (len(messages), None)
    found = [jsontext.parse(line) for line in lines.rstrip(b"\n").split(b"\n")]
    assert all(map(jsontext.same, found, map(jsontext.parse, messages)))


def test_lines_before_a_broken_payload_come_whole():
    """The place in the block is told, and of the broken message nothing."""
    payloads = [CANAL.encode(message) for message in GOOD]
    lines = b"".join(CANAL.decode(payload) + b"\n" for payload in payloads[:2])
    raw = b"".join(payloads[:3])[:-1]
    broken, count, sentence = decoded(raw, 3)
    assert (broken, count) == (lines, 2)
    assert sentence.startswith("canal: $")
    assert sentence.endswith(", where the payload ends")


@pytest.mark.parametrize(
    ("raw", "count", "sentence"),
    [
        (b"\0", 2, "canal: $: expected at most one payload to a byte, got 2 in 1 bytes"),
        (b"\0\0", 10**9, "canal: $: expected at most one payload to a byte, got 1000000000 in 2 bytes"),
        (b"\0", 0, "canal: $: expected the end of the payload at byte 0, got 1 more"),
    ],
)
def test_a_block_with_another_count_is_an_error(raw, count, sentence):
    """Bytes left over as well as bytes that are not there."""
    assert decoded(raw, count) == (b"", 0, sentence)


def test_a_block_of_an_older_schema_comes_under_the_present_names():
    """Aliases apply, message by message."""
    declared = CANAL.schema.json.replace('"name": "gtid"', '"name": "gtidNew", "aliases": ["gtid"]', 1)
    newer = Format("newer", cdcavro.parse_schema(declared))
    payload = CANAL.encode(b'{"type":"INSERT","database":"a","gtid":"x"}')
    line = newer.decode(payload, CANAL.schema) + b"\n"
    assert b'"gtidNew":"x"' in line
    assert list(newer.decode_block(payload * 3, 3, CANAL.schema)) == [(line, 1)] * 3


def test_text_comes_in_pieces_of_bounded_size():
    """A block that unpacks to gigabytes of text is never held as such."""
    payload = CANAL.encode(GOOD[0])
    line = len(CANAL.decode(payload)) + 1
    pieces = list(CANAL.decode_block(payload * 5000, 5000, CANAL.schema))
    assert sum(count for _, count in pieces) == 5000
    assert [len(raw) for raw, _ in pieces] == [count * line for _, count in pieces]
    assert max(len(raw) for raw, _ in pieces) < (256 << 10) + line


def test_runs_hold_every_block_once_and_end_before_an_error():
    """Small blocks go together until they are worth the way to another thread."""

    def frames():
        for number, size in enumerate([10, 1200 << 10, 10, 20, 100 << 10, 1000 << 10, 5]):
            yield PackedBlock(1, number, number, size, b"")
        raise FileError("x", "y", "z")

    found = []
    with pytest.raises(FileError):
        found.extend(run.blocks for run in group_blocks(frames(), PLAIN, None))
    assert [[frame.place for frame in held] for held in found] == [[0, 1], [2, 3, 4, 5], [6]]
    small = group_blocks((PackedBlock(1, 0, 0, 200 << 10, b"") for _ in range(4)), Framing("deflate", b""), None)
    assert [len(run.blocks) for run in small] == [2, 2]


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_a_run_in_a_file_holds_its_blocks_and_no_other(tmp_path, codec):
    """Whoever is given the place of some blocks reads just these."""
    framing = Framing(codec, PLAIN.marker)
    blocks = [Block(bytes([number]) * 20_000, 1 + number) for number in range(30)]
    path = tmp_path / "x"
    path.write_bytes(b"".join(piece for block in blocks for piece in framing.pack(block)))
    place = open_shared_input(str(path))
    frames = list(read_frames(place.stream(0), 0, framing, "x", skip=True))
    for first, last in ((0, 0), (0, 29), (3, 9), (29, 29)):
        run = BlockRun(tuple(frames[first : last + 1]), place)
        assert [framing.unpack(frame, "x") for frame in run.frames()] == blocks[first : last + 1]


def test_the_marker_depends_on_schema_codec_and_text():
    """The same input gives the same file; nothing else gives the same sync_marker."""
    first = sync_marker(CANAL.schema, "null", b"a")
    assert first == sync_marker(CANAL.schema, "null", b"a")
    others = [
        sync_marker(CANAL.schema, "null", b"b"),
        sync_marker(CANAL.schema, "deflate", b"a"),
        sync_marker(cdcavro.load_schema("oms_canal"), "null", b"a"),
    ]
    assert len({first, *others}) == 4


@given(st.binary(max_size=20))
def test_no_text_holds_a_byte_of_the_marker(head):
    """So no string of a message can hold it, whoever sent the message."""
    assert len(sync_marker(CANAL.schema, "null", head)) == 16
    for byte in sync_marker(CANAL.schema, "null", head):
        with pytest.raises(UnicodeDecodeError):
            (bytes([byte]) + b"\x80\x80\x80").decode()


@pytest.mark.slow
@pytest.mark.parametrize("format", cdcavro.FORMATS)
@given(data=st.data())
def test_no_payload_holds_eleven_bytes_in_a_row_that_are_none_of_text(format, data):
    """Numbers have at most ten, and what tells their branch or their name stands between them."""
    payload = cdcavro.encode(data.draw(texts(format)), format)
    assert re.search(rb"[\xc0\xc1\xf5-\xff]{11}", payload) is None


@pytest.mark.parametrize("framing", [PLAIN, Framing("deflate", b"\xff" * 16)])
def test_a_chunk_of_long_payloads_becomes_several_blocks(framing, monkeypatch):
    """No block is longer than what is read, however much longer payloads are than their messages."""
    monkeypatch.setattr(block_codec, "_BLOCK_BYTES", 1_500)
    lines = [*GOOD, b'{"type":"X","\\u0061":1}', b"{"] * 6
    outcomes = list(ChunkEncoder("canal", framing)(Chunk(b"\n".join(lines) + b"\n")))
    raw = b"".join(piece for pieces, _ in outcomes for piece in pieces)
    frames = list(read_frames(io.BufferedReader(io.BytesIO(raw)), 0, framing, "x.avro"))
    assert len(frames) > 3
    assert sum(frame.count for frame in frames) == sum(tally.done for _, tally in outcomes) == len(plainly(lines)[0])
    assert b"".join(framing.unpack(frame, "x.avro").payloads for frame in frames) == b"".join(plainly(lines)[0])
    assert [tally.lines for _, tally in outcomes if tally.lines] == [len(lines)]


@pytest.mark.slow
def test_what_is_written_of_long_names_can_be_read(tmp_path):
    """A chunk in which each message takes about as much room as it may."""
    format = "oms_default_extend_column_type"
    members = ",".join(f'"{i}":1' for i in range(100))
    line = f'{{"recordType":"INSERT","postStruct":{{"__light_type":{{"{"/" * 400}":{{{members}}}}}}}}}'.encode()
    assert len(cdcavro.encode(line, format)) > 60_000
    raw = b"".join(line + b"\n" for _ in range((512 << 10) // len(line)))
    written = [piece for pieces, _ in ChunkEncoder(format, PLAIN)(Chunk(raw)) for piece in pieces]
    path = tmp_path / "x"
    path.write_bytes(b"".join(written))
    del written
    with path.open("rb") as stream:
        counts = [frame.count for frame in read_frames(stream, 0, PLAIN, "x", skip=True)]
    assert sum(counts) == raw.count(b"\n")


def test_a_payload_that_no_block_could_hold_is_a_fault(monkeypatch):
    """Of its line; the others are in their blocks."""
    monkeypatch.setattr(block_codec, "_PIECE_BYTES", 1_000)
    lines = [GOOD[0], b'{"type":"X","a":"%s"}' % (b"x" * 2_000), GOOD[1]]
    outcomes = list(ChunkEncoder("canal", PLAIN)(Chunk(b"\r\n".join(lines))))
    faults = [(str(error), line.number) for _, tally in outcomes for error, line in tally.faults]
    assert [number for _, number in faults] == [2]
    assert faults[0][0].startswith("canal: $: expected payloads of at most 1000 bytes, got 2")
