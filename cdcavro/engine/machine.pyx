# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The engine: runs the program of a wire schema over the bytes of messages and payloads, without Python objects.

It stops at whatever is not plain, and then the exact way in Python does that one message and finds the fault,
if there is one. What the engine accepts is what the exact way gives, byte for byte.
"""

from array import array

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
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
include "skip.pxi"
include "patches.pxi"
include "whole.pxi"
include "batches.pxi"
include "translate_structs.pxi"
include "translate.pxi"
include "translate_records.pxi"
include "translated_columns.pxi"
include "fill_structs.pxi"
include "fill.pxi"
include "filled_columns.pxi"
include "row_numbers.pxi"
include "compare.pxi"
include "put_values.pxi"
include "cells.pxi"
include "take_values.pxi"
include "values.pxi"
include "row_scalars.pxi"
include "order_structs.pxi"
include "row_structs.pxi"
include "changes.pxi"
include "patterns.pxi"
include "row_cells.pxi"
include "row_texts.pxi"
include "moments.pxi"
include "positions.pxi"
include "images.pxi"
include "orders.pxi"
include "lanes.pxi"
include "rows.pxi"
include "decoder.pxi"
include "row_batches.pxi"
include "told_places.pxi"


COMPILED = True


include "engine.pxi"
include "pattern_store.pxi"
include "row_engine.pxi"
include "surveys.pxi"
include "facts.pxi"
include "row_lines.pxi"
