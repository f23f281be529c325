cpdef bint has_members(bytes raw, Py_ssize_t members) except -1
cpdef bint has_long_number(bytes raw) except -1
cpdef bint is_number(str text) except -1
