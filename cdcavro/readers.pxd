cimport cython

from cdcavro.buffer cimport Buffer
from cdcavro.source cimport Payload

cdef object UNSET
cdef double _MAX_DOUBLE


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
