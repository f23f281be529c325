cimport cython

from cdcavro.avro.buffer cimport ByteReader
from cdcavro.exact.jsontext cimport escape

cdef int _INT_BYTES


cdef class Decoder(ByteReader):
    @cython.locals(value="long long", start="Py_ssize_t")
    cpdef long long read_int(self) except? -1
    cpdef bytes read_bytes(self)
    @cython.locals(byte=int)
    cpdef bint read_boolean(self) except -1
    cpdef double read_float(self) except? -1
    @cython.locals(index="long long", start="Py_ssize_t")
    cpdef Py_ssize_t read_index(self, Py_ssize_t count, str what) except -1
    @cython.locals(count="long long", size="long long")
    cpdef Py_ssize_t read_block(self, bint is_weightless=*) except -1
    @cython.locals(count="long long")
    cdef Py_ssize_t _weigh(self, long long count) except -1
    cpdef int descend(self, Py_ssize_t levels) except -1
    cpdef int ascend(self, Py_ssize_t levels) except -1
