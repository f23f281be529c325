cimport cython

from cdcavro.exact.jsontext cimport escape
from cdcavro.exact.numbers cimport plain_text

cpdef bint same(object left, object right) except -1
cpdef bint same_text(object left, object right) except -1
@cython.locals(left_text=str, right_text=str)
cdef bint _same(object left, object right, Py_ssize_t depth) except -1
cdef bint _has_members(dict left, dict right, Py_ssize_t depth) except -1
cdef bint _has_items(list left, list right, Py_ssize_t depth) except -1
cdef _check_bottom(Py_ssize_t depth)
