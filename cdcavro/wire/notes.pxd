cimport cython

from cdcavro.avro.buffer cimport Buffer


@cython.final
cdef class Notes:
    cdef list _entries
    cdef readonly Py_ssize_t count
    cdef public Py_ssize_t members

    cpdef note(self, str pointer, str value)
    cpdef below(self, str pointer, Py_ssize_t since)
    cpdef first(self, Py_ssize_t since, Py_ssize_t middle)
    cpdef write(self, Buffer out)
