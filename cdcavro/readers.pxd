cimport cython

from cdcavro.source cimport Source

cdef object UNSET
cdef double _MAX_DOUBLE


cdef class Payload(Source):
    cdef public dict extras


cdef class Reader:
    cpdef read(self, Payload payload)


cdef class ScalarReader(Reader):
    cdef str _pointer


cdef class BooleanReader(ScalarReader):
    pass


cdef class IntReader(ScalarReader):
    pass


cdef class LongReader(ScalarReader):
    pass


cdef class DoubleReader(ScalarReader):
    @cython.locals(value=double)
    cpdef read(self, Payload payload)


cdef class StringReader(ScalarReader):
    pass


cdef class HeldReader(Reader):
    cdef object _take
    cdef str _pointer


cdef class EnumReader(Reader):
    cdef tuple _symbols
    cdef str _pointer


cdef class OptionalReader(Reader):
    cdef Reader _inner
    cdef Py_ssize_t _index
    cdef object _missing
    cdef str _pointer

    @cython.locals(index=Py_ssize_t)
    cpdef read(self, Payload payload)


cdef class UnionReader(Reader):
    cdef list _branches
    cdef object _missing
    cdef str _pointer

    @cython.locals(branch=Reader, index=Py_ssize_t)
    cpdef read(self, Payload payload)


cdef class ArrayReader(Reader):
    cdef Reader _items
    cdef str _pointer

    @cython.locals(reader=Reader, items=list, in_item=bint, count=Py_ssize_t)
    cpdef read(self, Payload payload)


cdef class MapReader(Reader):
    cdef Reader _values
    cdef str _pointer

    @cython.locals(reader=Reader, entries=dict, in_value=bint, count=Py_ssize_t, name=str)
    cpdef read(self, Payload payload)


cdef class RecordReader(Reader):
    cdef tuple _fields
    cdef frozenset _named
    cdef str _pointer

    @cython.locals(reader=Reader, record=dict, kind=str, name=str)
    cpdef read(self, Payload payload)


cdef class MessageReader:
    cdef RecordReader _record
    cdef object _members

    @cython.locals(record=dict)
    cpdef dict read(self, Payload payload)
