cimport cython

from cdcavro.avro.buffer cimport Buffer
from cdcavro.exact.jsontext cimport kind, render
from cdcavro.exact.numbers cimport ExactNumber
from cdcavro.wire.extras cimport Extras

cdef long long MAX_LONG


cdef class Writer:
    cpdef write(self, Buffer out, object value, Extras notes)


cdef class ScalarWriter(Writer):
    cdef object _convert
    cdef str _pointer
    cdef readonly str expected
    cdef readonly type own

    cpdef bint fits(self, object value) except -1
    cpdef converted(self, object value)
    cpdef _write_other(self, Buffer out, object value, Extras notes)
    cpdef _put(self, Buffer out, object value)


@cython.final
cdef class StringWriter(ScalarWriter):
    pass


@cython.final
cdef class LongWriter(ScalarWriter):
    cdef long long _most


@cython.final
cdef class BooleanWriter(ScalarWriter):
    pass


@cython.final
cdef class EnumWriter(Writer):
    cdef dict _symbols
    cdef dict _spellings
    cdef object _other
    cdef str _pointer


@cython.final
cdef class ColumnWriter(Writer):
    cdef int _null
    cdef int _boolean
    cdef int _long
    cdef int _double
    cdef int _string
    cdef int _number
    cdef int _text
    cdef int _depth


cpdef str json_text_of(object value, str expected, str pointer)
