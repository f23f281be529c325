# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The engine: runs the program of a wire schema over the bytes of messages and payloads, without Python objects.

It stops at whatever is not plain, and then the exact way in Python does that one message and finds the fault,
if there is one. What the engine accepts is what the exact way gives, byte for byte.
"""

from array import array

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING
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
from cdcavro.exact.jsontext import MAX_DEPTH, check_value, escape, parse_quickly, render
from cdcavro.exact.jsontext import ABSENT as ABSENT_MEMBER
from cdcavro.exact.numbers import ExactNumber, exact_number, plain_text

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    object PyUnicode_DecodeUTF8(const char *start, Py_ssize_t size, const char *errors)
    bint PyUnicode_CheckExact(object value)
    bint PyUnicode_IS_ASCII(object text)

COMPILED = True

# Bytes.
include "run.pxi"
include "scan.pxi"
include "numbers.pxi"
include "binary.pxi"
include "jsontext.pxi"
include "names.pxi"
include "arrow_column.pxi"

# Payload to payload, and to columns.
include "translation.pxi"
include "columns.pxi"

# Messages: text to payload and back.
include "extras.pxi"
include "to_payload.pxi"
include "to_text.pxi"
include "values.pxi"
include "decoder.pxi"
include "engine.pxi"
include "envelopes.pxi"
include "images.pxi"
include "protobuf.pxi"
include "joined.pxi"

# Messages to typed rows.
include "pattern.pxi"
include "cells.pxi"
include "positions.pxi"
include "order.pxi"
include "rows.pxi"
include "row_engine.pxi"
include "row_rules.pxi"
include "surveys.pxi"
