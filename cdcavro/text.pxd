cimport cython

cdef double _FIRST_WITHOUT_EXPONENT
cdef Py_ssize_t _SURE_CHARACTERS
cdef Py_ssize_t _DOUBLE_CHARACTERS


cdef class ExactNumber:
    cdef readonly str text


@cython.locals(value=double)
cpdef fraction(str text)
cdef bint _is_shortest(str text, double value) except -1
cpdef str escape(str name)
