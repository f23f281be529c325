cimport cython

from cdcavro.buffer cimport Buffer
from cdcavro.source cimport Source

cdef object UNSET
cdef bint COMPILED
cdef double _MAX_DOUBLE
cdef int _STREAK
cdef int _ARRAY
cdef int _ARRAY_END
cdef int _OBJECT
cdef int _OBJECT_END
cdef int _COMMA
cdef int _COLON
cdef int _NEWLINE


@cython.final
cdef class Payload(Source):
    cdef public dict extras
    cdef Py_ssize_t start
    cdef Py_ssize_t stop

    @cython.locals(count=Py_ssize_t)
    cpdef skip_texts(self)
    cpdef Payload back(self)
    cpdef bytes tail(self)


cdef class Reader:
    cpdef read(self, Payload payload)
    cpdef bint render(self, Payload payload, Buffer out) except -1


cdef class ScalarReader(Reader):
    cdef str _pointer


@cython.final
cdef class BooleanReader(ScalarReader):
    pass


cdef class LongReader(ScalarReader):
    cdef long long _read_whole(self, Payload payload) except? -1


cdef class IntReader(LongReader):
    pass


cdef class DoubleReader(ScalarReader):
    @cython.locals(value=double)
    cpdef read(self, Payload payload)


@cython.final
cdef class StringReader(ScalarReader):
    pass


cdef class NumberReader(Reader):
    cdef str _pointer

    @cython.locals(held=str)
    cpdef read(self, Payload payload)
    @cython.locals(held=str)
    cpdef bint render(self, Payload payload, Buffer out) except -1


@cython.final
cdef class TextReader(Reader):
    cdef Py_ssize_t _above
    cdef str _pointer


@cython.final
cdef class EnumReader(Reader):
    cdef tuple _symbols
    cdef tuple _texts
    cdef str _pointer

    cdef Py_ssize_t _index(self, Payload payload) except -1


@cython.final
cdef class OptionalReader(Reader):
    cdef Reader _inner
    cdef Py_ssize_t _branch
    cdef object _missing
    cdef str _pointer

    cdef bint _is_there(self, Payload payload) except -1


cdef bint _render_missing(object missing, Buffer out) except -1


cdef class UnionReader(Reader):
    cdef list _branches
    cdef object _missing
    cdef str _pointer

    @cython.locals(branch=Reader)
    cpdef read(self, Payload payload)
    @cython.locals(branch=Reader)
    cpdef bint render(self, Payload payload, Buffer out) except -1
    cdef Py_ssize_t _index(self, Payload payload) except -1


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
    cdef dict _kept

    @cython.locals(record=dict, tail=bytes, steps=list)
    cpdef dict read(self, Payload payload)
    cdef list _steps(self, bytes tail)
    @cython.locals(out=Buffer, position=Py_ssize_t)
    cpdef bytes decode(self, bytes raw)
    @cython.locals(done=Py_ssize_t, size=Py_ssize_t)
    cpdef tuple decode_lines(self, bytes raw, Py_ssize_t position, Py_ssize_t count, Buffer out, Py_ssize_t most)
    @cython.locals(payload=Payload, record=dict, size=Py_ssize_t)
    cdef Py_ssize_t _append(self, bytes raw, Py_ssize_t position, Buffer out) except -1
