cimport cython

from cdcavro.exact.numbers cimport check_finite
from cdcavro.exact.scan cimport has_long_number, has_members


@cython.locals(members=Py_ssize_t)
cpdef parse_quickly(bytes raw, Py_ssize_t above)
cpdef check_value(object value, Py_ssize_t depth)
@cython.locals(members=Py_ssize_t)
cpdef Py_ssize_t count_members(object value, Py_ssize_t depth) except -1
