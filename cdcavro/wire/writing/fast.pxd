cimport cython

from cdcavro.avro.buffer cimport Buffer
from cdcavro.exact.scan cimport has_long_number, has_members
from cdcavro.wire.writing.messages cimport MessageWriter


cdef object loads


@cython.final
cdef class Encoder:
    cdef MessageWriter _writer

    @cython.locals(out=Buffer)
    cpdef bytes encode(self, bytes raw)
    @cython.locals(out=Buffer, members=Py_ssize_t)
    cpdef object parse(self, bytes raw)
    @cython.locals(i=Py_ssize_t, size=Py_ssize_t)
    cpdef Py_ssize_t encode_lines(self, list lines, Py_ssize_t first, Buffer out) except -1
    @cython.locals(members=Py_ssize_t)
    cdef bint _append(self, bytes raw, Buffer out) except -1
