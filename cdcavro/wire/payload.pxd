cimport cython

from cdcavro.avro.decoder cimport Source
from cdcavro.exact.jsontext cimport escape


@cython.final
cdef class Payload(Source):
    cdef str place
    cdef public dict extras
    cdef Py_ssize_t start
    cdef Py_ssize_t stop

    @cython.locals(count=Py_ssize_t)
    cpdef skip_texts(self)
    cpdef Payload back(self)
    cpdef bytes tail(self)
