# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The engine: runs the program of a wire schema over the bytes of messages and payloads, without Python objects.

It stops at whatever is not plain, and then the exact way in Python does that one message and finds the fault,
if there is one. What the engine accepts is what the exact way gives, byte for byte.
"""

from array import array

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_CheckExact, PyDict_GetItemWithError
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport Py_EQ, PyObject, PyObject_GetAttr, PyObject_RichCompareBool
from cpython.tuple cimport PyTuple_CheckExact
from libc.stdint cimport INT32_MAX, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

import threading
from sys import intern

from msgspec import Struct

from cdcavro.avro.binary import MAX_COUNT, MAX_LEVELS, MAX_WEIGHTLESS, no_text, not_canonical, short, too_wide
from cdcavro.errors import MessageError, PayloadError
from cdcavro.exact.fastjson import check_value, parse_quickly
from cdcavro.exact.jsontext import MAX_DEPTH, render
from cdcavro.exact.numbers import ExactNumber, plain_text

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    object PyUnicode_DecodeUTF8(const char *start, Py_ssize_t size, const char *errors)
    bint PyUnicode_CheckExact(object value)
    bint PyUnicode_IS_ASCII(object text)

cdef enum:
    BOOLEAN, INT, LONG, STRING, ENUM, COLUMN, ARRAY, MAP, RECORD, OPTIONAL, VARIANT

cdef enum:
    ABSENT, NULL_, REQUIRED, REST, EXTRAS

cdef enum:  # what became of a member; 0 is that it was not reached yet
    LEFT_OUT = 1
    WRITTEN = 2

cdef enum:
    OK = 0
    LEFT = 1  # to the exact way
    ENDED = 2
    MOST_PROBES = 64
    VARINT = 10
    MOST_PATCHES = 100000
    INSIDE = 1 << 30  # a mark of a member: something in it has a patch
    MOST_NOTES = 100000
    FREE = 64 << 10
    PROPORTION = 64
    MOST_POINTERS = 2 << 20  # bytes of all pointers of a message; the exact way takes so many characters
    MOST_NAMES = 1 << 18  # of a message, in a table that is half full at the most
    KEPT = 1 << 24  # bytes of room that wait for the next message, or for the next batch of 10,000
    SHORT = 1 << 16  # bytes of a message that is converted before another thread would have its turn
    TAIL = 2048
    FIRST_NOTES = 16
    FIRST_NAMES = 256
    NEWLINE = 10

cdef struct Instruction:
    int32_t kind
    int32_t a[7]

cdef struct Member:
    int32_t label
    int32_t size
    int32_t node
    int32_t missing
    int32_t pointer
    int32_t length
    int32_t part  # of a typed row
    int32_t unit  # of a time, in microseconds

cdef struct Note:  # where its pointer and its text stand in `said`; the text begins where the pointer stops
    Py_ssize_t start
    Py_ssize_t stop
    Py_ssize_t size

cdef struct Step:  # to a member by name, or to an item by its index
    const uint8_t *name
    Py_ssize_t size
    int64_t index

cdef struct Slice:  # where a member was written, and its notes
    Py_ssize_t start
    Py_ssize_t stop
    Py_ssize_t state
    Py_ssize_t first_note
    Py_ssize_t last_note

cdef struct Patch:  # a text in place of a member, or of one that the schema does not name, whose label is said, too
    int32_t member
    int32_t node
    uint32_t applied  # in which run it replaced a value
    # Of members of an array's items: which item, and the numbers of the next patch of the same member, of that whose
    # turn it is, and of the last; the first patch of a member knows these two.
    int32_t next
    int32_t turn
    int32_t last
    int64_t index
    Py_ssize_t start
    Py_ssize_t stop
    Py_ssize_t end

include "structs.pxi"

cdef struct Run:
    const Instruction *code
    const Member *members
    const int32_t *symbols
    const uint8_t *texts
    int32_t *follows
    int root
    bint odd  # a number was seen that msgspec does not parse exactly
    int32_t count  # of members
    int32_t nodes
    int32_t most_levels
    int64_t most_items
    Py_ssize_t most_size
    const uint8_t *at
    const uint8_t *end
    uint8_t *out
    Py_ssize_t size
    Py_ssize_t room
    Note *notes
    Py_ssize_t noted
    Py_ssize_t notes_room
    Py_ssize_t pointed  # bytes of pointers
    uint8_t *said
    Py_ssize_t said_size
    Py_ssize_t said_room
    Step steps[130]
    int stepped
    Slice *slices
    Py_ssize_t depth
    Py_ssize_t slices_room
    Name *names
    uint32_t named
    uint32_t names_room
    uint32_t run
    uint32_t object
    KnownNames *known
    # Payload to text: what the extras of the last payload say, which the next one often repeats.
    int32_t *patched  # the patch of each member, and behind them how many each record has
    Patch *patches
    int64_t index  # of the item that is put out
    int32_t *other  # the number of the member, of those that no record names, that is to be expected
    int patch_count
    int patches_room
    Py_ssize_t around  # where what stands before the value of a Kafka record is said, and its length
    Py_ssize_t around_size
    int64_t items_left
    int applied
    bint again
    bint vary
    const uint8_t *learned
    const uint8_t *learned_end
    uint8_t tail[2048]
    Py_ssize_t tail_size
    # Batches: where each value of a column ends.
    int32_t *ends
    Py_ssize_t ends_room
    Run *next  # of those that wait

include "scan.pxi"
include "digits.pxi"
include "output.pxi"
include "names.pxi"
include "numbers.pxi"
include "doubles.pxi"
include "compact.pxi"
include "quick.pxi"
include "to_payload.pxi"
include "notes.pxi"
include "members.pxi"
include "message.pxi"
include "quick_text.pxi"
include "to_text.pxi"
include "patches.pxi"
include "whole.pxi"
include "batches.pxi"
include "translate.pxi"
include "translated_columns.pxi"
include "row_numbers.pxi"
include "compare.pxi"
include "put_values.pxi"
include "cells.pxi"
include "take_values.pxi"
include "values.pxi"
include "row_scalars.pxi"
include "row_structs.pxi"
include "patterns.pxi"
include "row_cells.pxi"
include "row_texts.pxi"
include "moments.pxi"
include "positions.pxi"
include "images.pxi"
include "rows.pxi"
include "decoder.pxi"
include "row_batches.pxi"


COMPILED = True


cdef class Engine:
    """The engine of one program (`Program`). Any number of threads may use it at once, each with a run of its own."""

    cdef bytes _code, _fields, _symbols, _texts
    cdef int _root, _levels
    cdef int64_t _items
    cdef Py_ssize_t _size
    # The runs that no thread uses, in each direction; they are taken and given back under the GIL.
    cdef Run *_writing
    cdef Run *_reading

    def __cinit__(self, program, *_):
        self._code, self._fields = program.code.tobytes(), program.fields.tobytes()
        self._symbols, self._texts = program.symbols.tobytes(), program.texts + bytes(SLACK)
        self._root = program.root
        self._levels, self._items, self._size = program.bounds

    def __dealloc__(self):
        _tear_down(self._writing)
        _tear_down(self._reading)

    cdef Run *_new_run(self) except NULL:
        """Return the state of runs in one direction, of which one is under way at a time."""
        cdef Run *r = <Run *>calloc(1, sizeof(Run))
        cdef Py_ssize_t nodes = len(self._code) // sizeof(Instruction), i
        cdef int j
        if r == NULL:
            raise MemoryError
        r.root = self._root
        r.code = <const Instruction *>PyBytes_AS_STRING(self._code)
        r.members = <const Member *>PyBytes_AS_STRING(self._fields)
        r.symbols = <const int32_t *>PyBytes_AS_STRING(self._symbols)
        r.texts = <const uint8_t *>PyBytes_AS_STRING(self._texts)
        r.most_levels, r.most_items, r.most_size = self._levels, self._items, self._size
        r.count = <int>(len(self._fields) // sizeof(Member))
        r.follows = <int32_t *>calloc(nodes + r.count + 1, sizeof(int32_t))
        r.notes_room, r.names_room, r.tail_size = FIRST_NOTES, FIRST_NAMES, 1
        r.notes = <Note *>malloc(FIRST_NOTES * sizeof(Note))
        r.names = <Name *>calloc(FIRST_NAMES, sizeof(Name))
        r.nodes = <int>nodes
        r.patched = <int32_t *>calloc(r.count + nodes + 1, sizeof(int32_t))
        r.known = <KnownNames *>calloc(1, sizeof(KnownNames))
        if r.known == NULL or r.follows == NULL or r.notes == NULL or r.names == NULL or r.patched == NULL:
            _tear_down(r)
            raise MemoryError
        for i in range(nodes):
            if r.code[i].kind == RECORD:
                for j in range(r.code[i].a[1]):
                    r.follows[r.code[i].a[0] + j] = j + 1
        return r

    cdef Run *_borrowed(self, Run **waiting) except NULL:
        """Return a run of one direction for this thread alone, with nothing put out."""
        cdef Run *r = waiting[0]
        if r == NULL:
            r = self._new_run()
        else:
            waiting[0] = r.next
            r.next = NULL
        r.size = 0
        return r

    cdef bytes _given_back(self, Run *r, Run **waiting, bint is_done):
        """Return what a run has put out, None if it did not come to its end, and let the run wait for the next message."""
        try:
            return PyBytes_FromStringAndSize(<const char *>r.out, r.size) if is_done else None
        finally:
            _shrink(r)
            r.next = waiting[0]
            waiting[0] = r

    def encode(self, message):
        """Return a message as a payload; None where it is left to the exact way, as whatever is faulty is."""
        cdef bytes raw = message if type(message) is bytes else _utf8(message)
        if raw is None:
            return None
        cdef const uint8_t *start = _start(raw)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(raw)
        cdef Run *r
        cdef int left
        if self._root < 0:
            return None
        r = self._borrowed(&self._writing)
        left = _written(r, start, size)
        return self._given_back(r, &self._writing, left == OK)

    def is_plain(self, bytes raw):
        """Return whether a message is one that msgspec parses exactly, and that conforms to the schema or is noted."""
        cdef const uint8_t *start = _start(raw)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(raw)
        cdef Run *r
        cdef bint plain
        if self._root < 0:
            return False
        r = self._borrowed(&self._writing)
        r.odd = False
        plain = _written(r, start, size) == OK and not r.odd
        self._given_back(r, &self._writing, False)
        return plain

    def decode(self, payload):
        """Return a payload as text; None where it is left to the exact way."""
        cdef bytes raw = payload if type(payload) is bytes else _plain_bytes(payload, "a payload is bytes")
        cdef const uint8_t *start = _start(raw)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(raw)
        cdef Run *r
        cdef int left
        if self._root < 0:
            return None
        r = self._borrowed(&self._reading)
        if size <= SHORT:
            left = _render_message(r, r.root, start, size)
        else:
            with nogil:
                left = _render_message(r, r.root, start, size)
        return self._given_back(r, &self._reading, left == OK and r.at == r.end)

    def encode_text(self, bytes text, Py_ssize_t position):
        """Return the payloads of the lines of a text from a position on, their number, and the position behind them.

        It stops at a line that is left to the exact way, and at what no line end stands behind.
        """
        cdef const uint8_t *start = _start(text)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(text), count
        cdef Run *r
        if not 0 <= position <= size:
            raise ValueError("the lines from a position in the text on")
        if self._root < 0:
            return b"", 0, position
        r = self._borrowed(&self._writing)
        with nogil:
            count = _write_lines(r, start, size, &position)
        return self._given_back(r, &self._writing, True), count, position

    def decode_lines(self, bytes raw, Py_ssize_t position, Py_ssize_t count, Py_ssize_t most):
        """Return at most `count` payloads from a position on as lines, until they have `most` bytes.

        Also the position behind them, and their number; it stops at a payload that is left to the exact way.
        """
        cdef const uint8_t *start = _start(raw)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(raw), done
        cdef Run *r
        if not 0 <= position <= size:
            raise ValueError("the payloads from a position on")
        if self._root < 0:
            return b"", position, 0
        r = self._borrowed(&self._reading)
        with nogil:
            done = _render_lines(r, start, size, &position, count, most)
        return self._given_back(r, &self._reading, True), position, done

    def encode_column(self, column, Py_ssize_t first, Py_ssize_t base, Py_ssize_t most):
        """Return the payloads of a column's texts (`Slices`) from an index on, where each ends, and the index behind them.

        The ends are counted on from `base`, as 32-bit integers. A null has no bytes. It stops at a value that is left
        to the exact way, as one is that ends behind `most`.
        """
        if self._root < 0:
            return b"", b"", first
        return self._converted(column, first, base, most, &self._writing)

    def decode_column(self, column, Py_ssize_t first, Py_ssize_t base, Py_ssize_t most):
        """Return the texts of a column's payloads, as `encode_column` does the other way."""
        if self._root < 0:
            return b"", b"", first
        return self._converted(column, first, base, most, &self._reading)

    cdef tuple _converted(self, column, Py_ssize_t first, Py_ssize_t base, Py_ssize_t most, Run **waiting):
        cdef Column values
        cdef Run *r
        cdef bint writes = waiting == &self._writing
        cdef Py_ssize_t done = 0
        cdef bytes ends
        _open_column(&values, column)
        try:
            if not 0 <= first <= values.count or not 0 <= base <= most < <Py_ssize_t>1 << 31:
                raise ValueError("the values from an index on, which end within 31 bits")
            r = self._borrowed(waiting)
            try:
                with nogil:
                    done = _convert_column(r, writes, &values, first, base, most)
                ends = PyBytes_FromStringAndSize(<const char *>r.ends, done * sizeof(int32_t))
            except BaseException:
                self._given_back(r, waiting, False)
                raise
            return self._given_back(r, waiting, True), ends, first + done
        finally:
            _close_column(&values)


cdef int _written(Run *r, const uint8_t *start, Py_ssize_t size) noexcept:
    """Write a message; other threads go on meanwhile if it is long enough to be worth it."""
    cdef int left
    if size <= SHORT:
        return _write_message(r, r.root, start, size)
    with nogil:
        left = _write_message(r, r.root, start, size)
    return left


cdef void _shrink(Run *r) noexcept:
    """Give back much room, which does not wait for the next message."""
    if r.room > KEPT:
        free(r.out)
        r.out = NULL
        r.room = 0
    if r.said_room > KEPT:
        free(r.said)
        r.said = NULL
        r.said_room = r.said_size = 0
        _forget_extras(r)
    if r.slices_room > KEPT // 64:
        free(r.slices)
        r.slices = NULL
        r.slices_room = 0
    if r.patches_room > KEPT // 64:
        free(r.patches)
        r.patches = NULL
        r.patches_room = 0
        _forget_extras(r)
    if r.ends_room > KEPT // 4:
        free(r.ends)
        r.ends = NULL
        r.ends_room = 0


cdef bytes _plain_bytes(given, str expected):
    """Return the bytes of what is like bytes."""
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(memoryview(given))
    raise TypeError(f"{expected}, not {type(given).__name__}")


cdef bytes _utf8(message):
    """Return a message that is no bytes as such, None for one that has no UTF-8."""
    if not isinstance(message, str):
        return _plain_bytes(message, "text is bytes or str")
    try:
        return message.encode()
    except UnicodeEncodeError:
        return None


cdef inline const uint8_t *_start(bytes raw) except NULL:
    if raw is None:
        raise TypeError("a text or a payload is bytes, not None")
    return <const uint8_t *>PyBytes_AS_STRING(raw)


cdef void _tear_down(Run *r) noexcept:
    """Free a run, and those that wait behind it."""
    cdef Run *next
    while r != NULL:
        next = r.next
        free(r.out)
        free(r.notes)
        free(r.said)
        free(r.names)
        if r.known != NULL:
            _forget_names(r.known)
        free(r.known)
        free(r.slices)
        free(r.follows)
        free(r.patched)
        free(r.patches)
        free(r.ends)
        free(r)
        r = next
    if r == NULL:
        return
    free(r.out)
    free(r.notes)
    free(r.said)
    free(r.names)
    free(r.slices)
    free(r.follows)
    free(r.patched)
    free(r)


include "row_engine.pxi"
