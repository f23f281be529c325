cimport cython


@cython.locals(rows=list, olds=list, i=Py_ssize_t)
cpdef list changes_of(dict record, str format, object turner=*)
cdef _position(object event, object batch)
cdef _row(object whole, object row, object old, Py_ssize_t index, Py_ssize_t count)
@cython.locals(types=dict, codes=dict)
cdef tuple _table(dict record, object source)
cdef bint _is_as(dict members, tuple last) except -1
