cimport cython

from cdcavro.avro.buffer cimport Buffer
from cdcavro.wire.payload cimport PayloadDecoder
from cdcavro.wire.reading.values cimport Reader

cdef int _ARRAY
cdef int _ARRAY_END
cdef int _OBJECT
cdef int _OBJECT_END
cdef int _COMMA


cdef class ArrayReader(Reader):
    cdef Reader _items

    @cython.locals(reader=Reader, items=list, place=str, in_item=bint, count=Py_ssize_t)
    cpdef read(self, PayloadDecoder payload)
    @cython.locals(reader=Reader, place=str, done=Py_ssize_t, in_item=bint, count=Py_ssize_t)
    cpdef bint render(self, PayloadDecoder payload, Buffer out) except -1


cdef class MapReader(Reader):
    cdef Reader _values

    @cython.locals(reader=Reader, entries=dict, place=str, in_value=bint, count=Py_ssize_t, name=str)
    cpdef read(self, PayloadDecoder payload)
    @cython.locals(reader=Reader, names=set, place=str, done=Py_ssize_t, in_value=bint, count=Py_ssize_t, name=str)
    cpdef set render_entries(self, PayloadDecoder payload, Buffer out, bint first)
