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
@cython.locals(text=str, other=str)
cpdef bint same(object left, object right) except -1
cdef bint _has_members(dict left, dict right) except -1
cdef bint _has_items(list left, list right) except -1
