cimport cython

from cdcavro.buffer cimport Buffer
from cdcavro.writers cimport MessageWriter


@cython.final
cdef class Encoder:
    cdef object _decode
    cdef MessageWriter _writer

    @cython.locals(out=Buffer)
    cpdef bytes encode(self, bytes raw)
    @cython.locals(i=Py_ssize_t, size=Py_ssize_t)
    cpdef Py_ssize_t encode_lines(self, list lines, Py_ssize_t first, Buffer out) except -1
    @cython.locals(members=Py_ssize_t)
    cdef bint _append(self, bytes raw, Buffer out) except -1
