cimport cython

from cdcavro.exact.scan cimport is_number

cdef double _FIRST_WITHOUT_EXPONENT
cdef Py_ssize_t _SURE_CHARACTERS
cdef Py_ssize_t _DOUBLE_CHARACTERS
cdef double _MAX_DOUBLE
cdef tuple _POWERS
cdef tuple _LEAST
cdef Py_ssize_t _SHORT


cdef class ExactNumber:
    cdef readonly str text


@cython.locals(value=double)
cpdef fraction(str text)
cpdef number(str text)
cpdef integer(str text)
cdef bint _is_shortest(str text, double value) except -1
cpdef check_finite(double value, str pointer=*)
cpdef str plain_text(object value)
@cython.locals(point=Py_ssize_t, places=Py_ssize_t)
cpdef unscaled(str text, Py_ssize_t scale, Py_ssize_t precision)
cpdef str number_text(object value, bint is_text=*)
cpdef bytes minimal_bytes(object value)
