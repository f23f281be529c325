from cdcavro.avro.buffer cimport Buffer


cdef class Engine:
    cdef void *_writing
    cdef void *_reading
    cdef bytes _code
    cdef bytes _fields
    cdef bytes _symbols
    cdef bytes _texts
    cdef int _root
    cdef int _levels
    cdef long long _items

    cdef void *_new_run(self) except NULL
    cpdef bytes encode(self, bytes raw)
    cpdef bint is_plain(self, bytes raw) except -1
    cpdef Py_ssize_t encode_lines(self, list lines, Py_ssize_t first, Buffer out) except -1
    cpdef bytes decode(self, bytes raw)
    cpdef tuple decode_lines(self, bytes raw, Py_ssize_t position, Py_ssize_t count, Buffer out, Py_ssize_t most)
