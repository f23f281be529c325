cimport cython

from cdcavro.exact.caching cimport WeightedCache
from cdcavro.exact.jsontext cimport render
from cdcavro.wire.payload cimport PayloadDecoder
from cdcavro.wire.reading.collections cimport MapReader
from cdcavro.wire.reading.values cimport Reader, StringReader

cdef object UNSET


@cython.final
cdef class FieldReader:
    cdef public str members
    cdef public str name
    cdef str pointer
    cdef Reader reader


cdef class RecordReader(Reader):
    cdef tuple _fields
    cdef frozenset _named

    @cython.locals(field=FieldReader, record=dict)
    cpdef read(self, PayloadDecoder payload)
    cdef _pass_extras(self, PayloadDecoder payload, Reader reader)
    cdef _check_rest(self, object names)


@cython.final
cdef class MessageReader:
    cdef RecordReader _record
    cdef object _members
    cdef WeightedCache _kept

    @cython.locals(record=dict, tail=bytes, steps=list)
    cpdef dict read(self, PayloadDecoder payload)
    cdef list _steps(self, bytes tail)
    @cython.locals(payload=PayloadDecoder, text=bytes)
    cpdef bytes decode(self, bytes raw)
