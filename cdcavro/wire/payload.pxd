cimport cython

from cdcavro.avro.decoder cimport Decoder
from cdcavro.exact.jsontext cimport escape


@cython.final
cdef class PayloadDecoder(Decoder):
    cdef str place
    cdef public dict extras
    cdef Py_ssize_t start
    cdef Py_ssize_t stop

    @cython.locals(count=Py_ssize_t)
    cpdef skip_texts(self)
    cpdef PayloadDecoder back(self)
    cpdef bytes tail(self)
