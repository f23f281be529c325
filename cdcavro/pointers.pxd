cimport cython


@cython.locals(pointer=str, value=str, token=str)
cpdef apply(dict record, object extras, object places=*)
@cython.locals(end=Py_ssize_t)
cdef _check(str pointer, object extras)
@cython.locals(bare=str)
cdef _check_place(str pointer, str value, object places)
@cython.locals(tokens=list, token=str)
cdef tuple _parent(dict record, str pointer)
