cdef class Room:
    cdef public Py_ssize_t left
    cdef public Py_ssize_t edits
