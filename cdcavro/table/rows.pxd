cimport cython

from cdcavro.avro.buffer cimport Buffer
from cdcavro.exact.jsontext cimport escape, kind, render
from cdcavro.exact.numbers cimport plain_text

cdef int _LONG
cdef int _STRING
cdef int _BYTES
cdef int _DOUBLE
cdef int _SINGLE
cdef int _BOOLEAN


@cython.final
cdef class Cell:
    cdef readonly str name
    cdef readonly object read
    cdef int _kind
    cdef int _some
    cdef int _null
    cdef str _declared

    cpdef write_null(self, Buffer out)
    cpdef bint write(self, Buffer out, object value) except -1


@cython.final
cdef class Written:
    cdef list starts
    cdef list values


@cython.final
cdef class RowWriter:
    cdef tuple _cells
    cdef frozenset _columns
    cdef str _label
    cdef object _format
    cdef object _misfits
    cdef bint _is_strict

    @cython.locals(cell=Cell, written=Written, i=Py_ssize_t, count=Py_ssize_t, absent=list, misfits=dict, cells=dict)
    cpdef Written write(self, Buffer out, object image, str pointer, Written last=*)
    cpdef check(self, object names, str pointer)
    cdef _write_absent(self, Buffer out, list names)


cpdef write_texts(Buffer out, dict texts)
cpdef str text_of(object value)
