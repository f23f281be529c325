cimport cython

from cdcavro.buffer cimport Buffer
from cdcavro.readers cimport Reader
from cdcavro.remembered cimport Kept
from cdcavro.source cimport Payload

cdef object UNSET
cdef bint COMPILED
cdef int _STREAK
cdef int _ARRAY
cdef int _ARRAY_END
cdef int _OBJECT
cdef int _OBJECT_END
cdef int _COMMA
cdef int _COLON
cdef int _NEWLINE


cdef class ArrayReader(Reader):
    cdef Reader _items
    cdef str _pointer

    @cython.locals(reader=Reader, items=list, in_item=bint, count=Py_ssize_t)
    cpdef read(self, Payload payload)
    @cython.locals(reader=Reader, found=Py_ssize_t, in_item=bint, count=Py_ssize_t)
    cpdef bint render(self, Payload payload, Buffer out) except -1


cdef class MapReader(Reader):
    cdef Reader _values
    cdef str _pointer

    @cython.locals(reader=Reader, entries=dict, in_value=bint, count=Py_ssize_t, name=str)
    cpdef read(self, Payload payload)
    @cython.locals(reader=Reader, names=set, found=Py_ssize_t, in_value=bint, count=Py_ssize_t, name=str)
    cpdef set render_entries(self, Payload payload, Buffer out, bint first)


cdef class RecordReader(Reader):
    cdef tuple _fields
    cdef frozenset _named
    cdef str _pointer

    @cython.locals(reader=Reader, record=dict, members=str, name=str)
    cpdef read(self, Payload payload)
    @cython.locals(reader=Reader, members=str, label=bytes, first=bint, size=Py_ssize_t)
    cpdef bint render(self, Payload payload, Buffer out) except -1
    cdef _pass_extras(self, Payload payload, Reader reader)
    cdef bint _render_rest(self, Payload payload, Buffer out, MapReader rest, bint first) except -1
    cdef _check_rest(self, object names)


@cython.final
cdef class MessageReader:
    cdef RecordReader _record
    cdef object _members
    cdef int _extras
    cdef Kept _kept

    @cython.locals(record=dict, tail=bytes, steps=list)
    cpdef dict read(self, Payload payload)
    cdef list _steps(self, bytes tail)
    @cython.locals(out=Buffer, position=Py_ssize_t)
    cpdef bytes decode(self, bytes raw)
    @cython.locals(done=Py_ssize_t, size=Py_ssize_t)
    cpdef tuple decode_lines(self, bytes raw, Py_ssize_t position, Py_ssize_t count, Buffer out, Py_ssize_t most)
    @cython.locals(payload=Payload, record=dict, size=Py_ssize_t)
    cdef Py_ssize_t _append(self, bytes raw, Py_ssize_t position, Buffer out) except -1
