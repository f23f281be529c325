cimport cython

from cdcavro.buffer cimport Buffer
from cdcavro.writers cimport MessageWriter


@cython.final
cdef class Encoder:
    cdef object _decode
    cdef MessageWriter _writer

    @cython.locals(out=Buffer, members=Py_ssize_t)
    cpdef bytes encode(self, bytes raw)
    @cython.locals(out=Buffer, members=Py_ssize_t)
    cpdef object parse(self, bytes raw)
