cimport cython

cdef tuple _POWERS
cdef tuple _LEAST
cdef Py_ssize_t _SHORT


@cython.locals(point=Py_ssize_t, places=Py_ssize_t)
cpdef unscaled(str text, Py_ssize_t scale, Py_ssize_t precision)
cpdef bytes minimal_bytes(object value)
