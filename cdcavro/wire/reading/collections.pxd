cimport cython

from cdcavro.wire.payload cimport PayloadDecoder
from cdcavro.wire.reading.values cimport Reader



cdef class ArrayReader(Reader):
    cdef Reader _items

    @cython.locals(reader=Reader, items=list, place=str, in_item=bint, count=Py_ssize_t)
    cpdef read(self, PayloadDecoder payload)


cdef class MapReader(Reader):
    cdef Reader _values

    @cython.locals(reader=Reader, entries=dict, place=str, in_value=bint, count=Py_ssize_t, name=str)
    cpdef read(self, PayloadDecoder payload)
