"""The functions over Arrow arrays, without Spark: however an array is laid out, they give what the functions of one message give."""

from __future__ import annotations

import gc
import importlib
import io
import sys
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.arrow.arrays import convert_values
from cdcavro.spark import arrow_udf
from cdcavro.spark.arrow_udf import in_worker
from cdcavro.spark.functions import ERROR, decode_batch, encode_batch, try_encode_batch
from support.messages import goldens

FORMAT = "oms_canal"
HAS_VIEWS = hasattr(pa, "binary_view")  # from pyarrow 16 on
BYTES = [pa.binary(), pa.large_binary(), *([pa.binary_view()] if HAS_VIEWS else [])]
TYPES = [*BYTES, pa.string(), pa.large_string(), *([pa.string_view()] if HAS_VIEWS else [])]
GOOD = st.sampled_from(goldens(FORMAT))
BAD = st.sampled_from([b"", b"{", b'{"type":1}', b"[]", '{"type":"北京"'.encode()])


@st.composite
def arrays(draw, values, types):
    """Return an array of some layout, perhaps a slice of a longer one, and its values."""
    held = draw(st.lists(st.none() | values, max_size=20))
    first = draw(st.integers(0, len(held)))
    count = draw(st.integers(0, len(held) - first))
    made = pa.array(held, pa.binary()).cast(draw(st.sampled_from(types)))
    return (sent(made) if draw(st.booleans()) else made).slice(first, count), held[first : first + count]


def sent(array):
    """Return an array as the other side of a stream has it."""
    sink = io.BytesIO()
    batch = pa.record_batch([array], ["a"])
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return next(iter(pa.ipc.open_stream(sink.getvalue()))).column(0)


def assert_holds(array, declared, values):
    """Check an array, buffers and all, also as the other side of a stream sees it."""
    array.validate(full=True)
    assert (array.type, array.to_pylist(), array.null_count) == (declared, values, values.count(None))
    assert sent(array).to_pylist() == values


@given(arrays(GOOD, TYPES))
def test_encode_gives_the_payload_of_each_text(given):
    """Strings and bytes, of 32 and 64 bits and views, whole arrays and slices."""
    array, texts = given
    wanted = [None if text is None else cdcavro.encode(text, FORMAT) for text in texts]
    assert_holds(encode_batch(array, FORMAT), pa.binary(), wanted)


@given(arrays(GOOD.map(lambda text: cdcavro.encode(text, FORMAT)), BYTES))
def test_decode_gives_the_text_of_each_payload(given):
    """As a string array."""
    array, payloads = given
    wanted = [None if payload is None else cdcavro.decode(payload, FORMAT).decode() for payload in payloads]
    assert_holds(decode_batch(array, FORMAT), pa.string(), wanted)


def tried(text):
    """Return what the struct of payload and error holds for a text."""
    if text is None:
        return None
    try:
        return {"payload": cdcavro.encode(text, FORMAT), "error": None}
    except cdcavro.MessageError as error:
        return {"payload": None, "error": error.fields}


@given(arrays(GOOD | BAD, TYPES))
def test_try_encode_gives_payload_or_error_of_each_text(given):
    """Exactly one of the two; null for null."""
    array, texts = given
    found = try_encode_batch(array, FORMAT)
    found.validate(full=True)
    assert found.type == pa.struct([("payload", pa.binary()), ("error", ERROR)])
    assert found.to_pylist() == [tried(text) for text in texts]


def test_bytes_that_are_not_utf8_are_the_fault_of_their_row():
    """Spark's strings may hold them, and Arrow's then do too."""
    strings = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff{", b'{"type":"A"}']).buffers())
    errors = [one["error"] and one["error"]["message"] for one in try_encode_batch(strings, FORMAT).to_pylist()]
    assert errors == ["oms_canal: $: expected UTF-8, got byte 0xff at byte 0", None]


@pytest.mark.parametrize("function", [encode_batch, decode_batch, try_encode_batch])
@pytest.mark.parametrize("array", [pa.array([], pa.string()), pa.nulls(9, pa.string()), pa.nulls(9), pa.nulls(0)])
def test_nothing_and_nulls_give_nothing_and_nulls(function, array):
    """Also where Arrow leaves buffers out."""
    for one in (array, sent(array)):
        assert function(one, FORMAT).to_pylist() == [None] * len(array)
    bare = pa.Array.from_buffers(pa.binary(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")])
    assert function(bare, FORMAT).to_pylist() == []


class Bare(list):
    """An array of no values without any buffer, as Arrow's format allows and pyarrow does not make."""

    type = pa.binary()
    offset = 0

    def buffers(self):
        """Return none."""
        return [None, None, None]


def test_an_array_without_buffers_is_empty():
    """Nothing is read from nowhere."""
    assert convert_values(Bare(), bytes).to_pylist() == []


def test_a_text_at_fault_without_rejects_is_raised():
    """With the sentence of the message."""
    with pytest.raises(cdcavro.TextError) as caught:
        encode_batch(pa.array([b"", None]), FORMAT)
    assert str(caught.value) == "oms_canal: $: expected JSON, got an empty line"


def test_a_batch_that_passes_the_offsets_says_what_to_set():
    """2 GiB is what Arrow's type carries."""
    assert convert_values(pa.array([b"ab", b"c"]), bytes, most=3).to_pylist() == [b"ab", b"c"]
    with pytest.raises(cdcavro.JobError) as caught:
        convert_values(pa.array([b"ab", b"c"]), bytes, most=2)
    advice = "take fewer at a time (on Spark, spark.sql.execution.arrow.maxRecordsPerBatch)"
    assert str(caught.value) == f"the values of one Arrow batch come to more than 2 bytes: {advice}"


@pytest.mark.parametrize("array", [pa.array([1]), pa.array([["a"]]), pa.array([{"a": "b"}])])
def test_a_column_of_another_type_is_refused(array):
    """A number does not become text unseen."""
    with pytest.raises(TypeError) as caught:
        encode_batch(array, FORMAT)
    assert str(caught.value) == f"a column is of text or bytes, not of {array.type}"


def test_offsets_that_point_outside_are_refused():
    """Whoever made the array, nothing beside its bytes is read."""
    offsets = pa.py_buffer(b"\0\0\0\0\xff\xff\0\0\3\0\0\0")
    array = pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"abc")])
    with pytest.raises(IndexError) as caught:
        encode_batch(array, FORMAT)
    assert str(caught.value) == "value 0 is not within the bytes of its column"


def test_a_worker_does_not_read_the_zip_files_on_its_path_before_each_task(tmp_path: Path, monkeypatch):
    """Modules that lie in them are found as before."""
    path = tmp_path / "modules.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("of_a_zip_one.py", "")
        archive.writestr("of_a_zip_two.py", "")
    monkeypatch.syspath_prepend(str(path))
    importlib.import_module("of_a_zip_one")
    assert str(path) in sys.path_importer_cache
    assert in_worker(lambda: str(path) in sys.path_importer_cache)() is False
    importlib.import_module("of_a_zip_two")


@pytest.mark.slow
def test_a_worker_looks_for_garbage_in_what_came_since_only():
    """Of what there is at its first task it is told that it stays, of what later ones make it is not."""
    arrow_udf._keep_modules.cache_clear()
    # Python 3.12 begins with a few.
    gc.unfreeze()
    own = len(gc.get_objects())
    try:
        first = in_worker(gc.get_freeze_count)()
        made = [[] for _ in range(own)]
        later = in_worker(gc.get_freeze_count)()
        assert first > own // 2
        assert later < own + len(made) // 2
    finally:
        gc.unfreeze()
