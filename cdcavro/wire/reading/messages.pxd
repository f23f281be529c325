cimport cython

from cdcavro.avro.buffer cimport Buffer
from cdcavro.exact.caching cimport WeightedCache
from cdcavro.exact.jsontext cimport render
from cdcavro.wire.payload cimport PayloadDecoder
from cdcavro.wire.reading.collections cimport MapReader
from cdcavro.wire.reading.values cimport Reader, StringReader

cdef object UNSET
cdef bint COMPILED
cdef int _STREAK
cdef int _OBJECT
cdef int _OBJECT_END
cdef int _COMMA
cdef int _NEWLINE


@cython.final
cdef class FieldReader:
    cdef public str members
    cdef public str name
    cdef str pointer
    cdef bytes label
    cdef Reader reader


cdef class RecordReader(Reader):
    cdef tuple _fields
    cdef frozenset _named

    @cython.locals(field=FieldReader, record=dict)
    cpdef read(self, PayloadDecoder payload)
    @cython.locals(field=FieldReader, first=bint, size=Py_ssize_t)
    cpdef bint render(self, PayloadDecoder payload, Buffer out) except -1
    cdef _pass_extras(self, PayloadDecoder payload, Reader reader)
    cdef bint _render_rest(self, PayloadDecoder payload, Buffer out, MapReader rest, bint first) except -1
    cdef _check_rest(self, object names)


@cython.final
cdef class MessageReader:
    cdef RecordReader _record
    cdef object _members
    cdef int _extras
    cdef WeightedCache _kept

    @cython.locals(record=dict, tail=bytes, steps=list)
    cpdef dict read(self, PayloadDecoder payload)
    cdef list _steps(self, bytes tail)
    @cython.locals(out=Buffer, position=Py_ssize_t)
    cpdef bytes decode(self, bytes raw)
    @cython.locals(done=Py_ssize_t, size=Py_ssize_t)
    cpdef tuple decode_lines(self, bytes raw, Py_ssize_t position, Py_ssize_t count, Buffer out, Py_ssize_t most)
    @cython.locals(payload=PayloadDecoder, record=dict, size=Py_ssize_t)
    cdef Py_ssize_t _append(self, bytes raw, Py_ssize_t position, Buffer out) except -1
