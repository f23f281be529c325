cimport cython

cdef double _FIRST_WITHOUT_EXPONENT
cdef Py_ssize_t _SURE_CHARACTERS
cdef Py_ssize_t _DOUBLE_CHARACTERS


cdef class ExactNumber:
    cdef readonly str text


@cython.locals(value=double)
cpdef fraction(str text)
cpdef number(str text)
cpdef integer(str text)
cdef bint _is_shortest(str text, double value) except -1
cpdef bytes to_bytes(object text)
cpdef bytes render(object value)
cpdef str kind(object value)
cpdef str escape(str name)
cpdef bint same(object left, object right) except -1
@cython.locals(text=str, other=str)
cdef bint _same(object left, object right, Py_ssize_t depth) except -1
cdef bint _has_members(dict left, dict right, Py_ssize_t depth) except -1
cdef bint _has_items(list left, list right, Py_ssize_t depth) except -1
cdef _check_bottom(Py_ssize_t depth)
