"""Container files: payloads go in and come out as they are, and a broken file is one clear error."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from itertools import accumulate
from random import Random

import fastavro
import pytest

from cdcavro import FORMATS, parse_schema
from cdcavro.avro.container import (
    BLOCK_BYTES,
    BLOCK_COUNT,
    CODECS,
    BlockQueue,
    ContainerReader,
    ContainerWriter,
    read_frames,
)
from cdcavro.errors import FileError
from cdcavro.wire.formats import format_of, get_format
from support.messages import goldens, shop_canal

CANAL = get_format("oms_canal")
PAYLOADS = [CANAL.encode(message) for message in shop_canal()]


def container(payloads=PAYLOADS, schema=CANAL.schema, codec="null"):
    """Return the bytes of a container file around payloads."""
    stream = io.BytesIO()
    writer = ContainerWriter(stream, schema, codec=codec)
    for payload in payloads:
        writer.write(payload)
    writer.flush()
    return stream.getvalue()


def blocks_of(raw):
    """Read the blocks of a container file."""
    return list(ContainerReader(io.BufferedReader(io.BytesIO(raw)), "x.avro"))


def error_of(raw):
    """Return the sentence of the error that reading a container file raises."""
    with pytest.raises(FileError) as caught:
        blocks_of(raw)
    return str(caught.value)


@pytest.mark.parametrize("codec", CODECS)
def test_payloads_come_back_as_they_went_in(codec):
    """No payload is encoded anew."""
    blocks = blocks_of(container(codec=codec))
    assert b"".join(block.payloads for block in blocks) == b"".join(PAYLOADS)
    assert sum(block.count for block in blocks) == len(PAYLOADS)


@pytest.mark.slow
def test_payloads_written_at_once_are_in_the_blocks_that_each_alone_would_be_in():
    """Whatever was written before, up to the numbers of payloads and bytes that end a block."""
    random = Random(7)
    for _ in range(60):
        sizes = random.choice(((0, 1, 3), (0, 500), (BLOCK_BYTES // 3, BLOCK_BYTES - 1, BLOCK_BYTES, 2 * BLOCK_BYTES)))
        # Large ones end a block each, so that a few are enough.
        count = random.choice((1, 999, 1000, 1001, 2500, 40) if max(sizes) <= 500 else (1, 7, 40))
        payloads = [bytes(random.choice(sizes)) for _ in range(count)]
        stream, done = io.BytesIO(), 0
        writer = ContainerWriter(stream, CANAL.schema, codec="deflate")
        while done < len(payloads):
            some = payloads[done : done + random.choice((1, 30, 3000))]
            writer.write_all(b"".join(some), list(accumulate(map(len, some))))
            done += len(some)
            if payloads[done : done + 1]:
                writer.write(payloads[done])
                done += 1
        writer.write_all(b"", [])
        writer.flush()
        assert blocks_of(stream.getvalue()) == blocks_of(container(payloads, codec="deflate"))


def test_blocks_that_are_packed_elsewhere_come_in_their_order():
    """At most some wait; a file is closed behind its last block, and without what waits if all is given up."""
    begun: list[str] = []

    def begin(work):
        begun.append("begun")
        return work

    queue, one, other = BlockQueue(begin, most=2), io.BytesIO(), _Kept()
    for number in range(4):
        queue.put(one, lambda number=number: [b"%d" % number, b","])
    assert (len(begun), one.getvalue()) == (4, b"0,1,")
    queue.put(other, lambda: [b"last"])
    queue.close(other)
    assert (one.getvalue(), other.closed) == (b"0,1,2,3,", False)
    queue.finish()
    assert (other.kept, other.closed) == (b"last", True)
    queue.put(one, lambda: [b"never"])
    queue.drop()
    queue.finish()
    assert one.closed


class _Kept(io.BytesIO):
    """A stream whose bytes are known when it is closed."""

    kept = b""

    def close(self):
        self.kept = self.kept or self.getvalue()
        super().close()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("codec", CODECS)
def test_fastavro_reads_the_file(format, codec):
    """Every record is there under any format's schema."""
    own = get_format(format)
    payloads = [own.encode(message) for message in goldens(format)]
    records = list(fastavro.reader(io.BytesIO(container(payloads, own.schema, codec))))
    expected = [fastavro.schemaless_reader(io.BytesIO(one), json.loads(own.schema.json)) for one in payloads]
    assert records == expected


@pytest.mark.parametrize("format", FORMATS)
def test_the_header_holds_the_whole_wire_schema(format):
    """Docs, aliases and attributes stay, and fastavro leaves no mark of its own."""
    schema = get_format(format).schema
    header = fastavro.block_reader(io.BytesIO(container([], schema))).metadata["avro.schema"]
    assert json.loads(header) == json.loads(schema.json)


def test_a_file_without_payloads_is_a_container_file():
    """It has a header and no block."""
    assert blocks_of(container([])) == []


def test_blocks_are_bounded_by_size_and_by_count():
    """Memory does not grow with the file, whether payloads are large or small."""
    large = blocks_of(container([bytes(30_000)] * 10))
    assert [block.count for block in large] == [3, 3, 3, 1]
    assert all(len(block.payloads) < BLOCK_BYTES + 30_000 for block in large)
    small = blocks_of(container([b"\x00"] * (BLOCK_COUNT + 1)))
    assert [block.count for block in small] == [BLOCK_COUNT, 1]


@pytest.mark.parametrize("format", FORMATS)
def test_the_format_of_a_file_is_told_by_the_name_of_its_record(format):
    """Each wire schema leads to its format."""
    assert format_of(get_format(format).schema) is get_format(format)


@pytest.mark.parametrize("declared", ['"string"', '{"type": "record", "name": "cdcavro.oms.Kanal", "fields": []}'])
def test_a_schema_of_another_name_has_no_format(declared):
    """Nothing is guessed from the shape."""
    assert format_of(parse_schema(declared)) is None


def test_the_header_gives_the_writer_schema():
    """It may be another version than the present one."""
    older = parse_schema(CANAL.schema.json.replace('"gtid"', '"gtidOld"'))
    reader = ContainerReader(io.BufferedReader(io.BytesIO(container([], older))), "x.avro")
    assert json.loads(reader.schema.json) == json.loads(older.json)


@pytest.mark.slow
def test_a_file_cut_anywhere_but_between_blocks_is_an_error():
    """Not one byte may be missing."""
    payloads = PAYLOADS[:3]
    empty, whole = len(container([])), container(payloads)
    for end in range(empty + 1, len(whole)):
        assert error_of(whole[:end]).startswith("x.avro: expected a")
    assert len(blocks_of(whole[:empty])) == 0


def test_a_file_cut_within_a_count_of_two_bytes_is_an_error():
    """It does not end between blocks."""
    raw = container([b"\x00"] * 100)
    empty = len(container([]))
    for end in (empty + 1, empty + 2, empty + 3, len(raw) - 1):
        assert error_of(raw[:end]) == "x.avro: expected a whole Avro container file, got one that ends too early"


def test_a_count_that_does_not_end_is_an_error():
    """Ten bytes are the most that a number has."""
    assert error_of(container([]) + b"\xff" * 30) == (
        "x.avro: expected an Avro container file that can be read, got 'a number of more than 10 bytes'"
    )


def test_payloads_that_are_no_deflate_are_an_error():
    """The block is damaged, though its length is right."""
    raw = container(codec="deflate")
    at = next(ContainerReader(io.BufferedReader(io.BytesIO(raw)), "x.avro").frames()).start
    assert error_of(raw[:at] + b"\xff" * 8 + raw[at + 8 :]) == (
        "x.avro: expected an Avro container file that can be read, "
        "got 'Error -3 while decompressing data: invalid block type'"
    )


@pytest.mark.parametrize("codec", CODECS)
def test_blocks_may_be_passed_over(codec):
    """Whoever only wants to know where they lie reads no payload."""
    raw = container([bytes(30_000)] * 10, codec=codec)
    reader = ContainerReader(io.BufferedReader(io.BytesIO(raw)), "x.avro")
    passed = io.BufferedReader(io.BytesIO(raw))
    passed.seek(reader.position)
    found = list(read_frames(passed, reader.position, reader.framing, "x.avro", skip=True))
    assert [replace(frame, packed=b"") for frame in reader.frames()] == found
    assert [frame.end for frame in found] == [*[frame.place for frame in found[1:]], len(raw)]
    passed = io.BufferedReader(io.BytesIO(raw[:-20]))
    passed.seek(reader.position)
    with pytest.raises(FileError) as caught:
        list(read_frames(passed, reader.position, reader.framing, "x.avro", skip=True))
    assert str(caught.value) == "x.avro: expected a whole Avro container file, got one that ends too early"


def test_what_is_no_container_file_is_an_error():
    """The first bytes tell."""
    expected = "x.avro: expected an Avro container file, got "
    assert error_of(b"") == expected + "an empty one"
    assert error_of(b'{"id": 1}') == expected + "one that starts with '{\"id'"
    assert error_of(b"Obj\x02") == expected + "one that starts with 'Obj\\x02'"


def test_a_broken_header_is_an_error():
    """One that is cut short, has no schema, or is no UTF-8."""
    raw = container([])
    assert error_of(raw[:10]) == "x.avro: expected a whole Avro container file, got one that ends too early"
    assert error_of(raw.replace(b"avro.schema", b"avro.schemb")) == (
        "x.avro: expected an Avro schema in the header, "
        "got schema text: not JSON: Expecting value: line 1 column 1 (char 0)"
    )
    assert error_of(container([], codec="deflate").replace(b"deflate", b"deflat\xff")) == (
        "x.avro: expected an Avro container file that can be read, got 'metadata that is not UTF-8'"
    )


@pytest.mark.parametrize("codec", ["deflatx", "snappyx"])
def test_another_codec_is_an_error(codec):
    """The sentence names it."""
    raw = container(codec="deflate").replace(b"deflate", codec.encode())
    assert error_of(raw) == f"x.avro: expected one of the codecs null, deflate, got '{codec}'"


def test_a_block_that_would_unpack_to_too_much_is_an_error_before_memory_is_taken(monkeypatch):
    """A small file cannot fill the memory."""
    raw = container([bytes(4 << 20)], codec="deflate")
    assert len(raw) < 10_000
    assert len(blocks_of(raw)) == 1
    monkeypatch.setattr("cdcavro.avro.container.MAX_BLOCK", (4 << 20) - 1)
    at = len(container([], codec="deflate")) + 3
    assert error_of(raw) == f"x.avro: expected a block of at most 4194303 bytes, got more at byte {at}"


def test_a_negative_count_of_payloads_is_an_error():
    """A block without bytes would hide it."""
    raw = container([])
    assert error_of(raw + b"\x01\x00" + raw[-16:]) == "x.avro: expected a count of payloads, got -1"


def test_a_changed_sync_marker_is_an_error():
    """The end of each block is checked."""
    raw = container()
    assert error_of(raw[:-1] + bytes([raw[-1] ^ 1])) == (
        "x.avro: expected an Avro container file that can be read, got 'expected sync marker not found'"
    )


def test_an_absurd_block_length_is_an_error_before_memory_is_taken():
    """The length is checked before anything is read."""
    header = container([])
    assert error_of(header + b"\x02" + b"\xff" * 7 + b"\x7f") == (
        f"x.avro: expected a length up to 117440512 bytes, got -36028797018963968 at byte {len(header) + 9}"
    )
    assert error_of(header + b"\x02" + b"\xfe" * 7 + b"\x7f").endswith(f"at byte {len(header) + 9}")


def test_a_header_whose_schema_breaks_a_rule_is_an_error():
    """With the rule."""
    raw = container([], parse_schema('{"type": "enum", "name": "E", "symbols": ["A", "B"]}'))
    assert error_of(raw.replace(b'"B"', b'"A"')) == (
        "x.avro: expected an Avro schema in the header, got schema $: symbols are given twice"
    )
    unknown = parse_schema('{"type":"record","name":"R","fields":[{"name":"n","type":["null","int"]}]}')
    raw = container([], unknown).replace(b'"int"', b'"S"  ')
    assert error_of(raw) == (
        "x.avro: expected an Avro schema in the header, got schema $.fields[0][1]: 'S' is not defined before it is used"
    )


def test_a_schema_that_only_avro_java_reads_is_in_the_header():
    """As plain JSON, whatever other parsers accept."""
    schema = parse_schema('{"type":"enum","name":"Größe","symbols":[]} // a comment')
    assert ContainerReader(io.BufferedReader(io.BytesIO(container([], schema))), "x.avro").schema == schema
