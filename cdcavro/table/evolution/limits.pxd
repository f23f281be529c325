cdef class SharedLimits:
    cdef public Py_ssize_t left
    cdef public Py_ssize_t edits
