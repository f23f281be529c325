cimport cython

from cdcavro.exact.jsontext cimport kind, render
from cdcavro.exact.numbers cimport ExactNumber
from cdcavro.exact.scan cimport is_number
from cdcavro.wire.payload cimport PayloadDecoder
from cdcavro.exact.fastjson cimport parse_quickly

cdef double _MAX_DOUBLE


cdef class Reader:
    cpdef read(self, PayloadDecoder payload)


@cython.final
cdef class BooleanReader(Reader):
    pass


@cython.final
cdef class LongReader(Reader):
    pass


@cython.final
cdef class IntReader(Reader):
    pass


cdef class DoubleReader(Reader):
    @cython.locals(value=double)
    cpdef read(self, PayloadDecoder payload)


@cython.final
cdef class StringReader(Reader):
    pass


cdef class NumberReader(Reader):
    @cython.locals(text=str)
    cpdef read(self, PayloadDecoder payload)


@cython.final
cdef class TextReader(Reader):
    cdef Py_ssize_t _above


@cython.final
cdef class EnumReader(Reader):
    cdef tuple _symbols


@cython.final
cdef class OptionalReader(Reader):
    cdef Reader _inner
    cdef Py_ssize_t _branch
    cdef object _missing


cdef class UnionReader(Reader):
    cdef list _branches
    cdef object _missing

    @cython.locals(branch=Reader)
    cpdef read(self, PayloadDecoder payload)
