cimport cython

from cdcavro.avro.buffer cimport Buffer
from cdcavro.exact.fastjson cimport check_value
from cdcavro.exact.jsontext cimport escape, kind, render
from cdcavro.wire.extras cimport Extras
from cdcavro.wire.writing.values cimport ScalarWriter, Writer

cdef object UNSET
cdef object _NONE


@cython.final
cdef class OptionalWriter(Writer):
    cdef int _index
    cdef Writer _inner
    cdef int _null
    cdef bint _null_is_usual
    cdef str _pointer
    cdef bint _takes_text


cpdef check_count(Py_ssize_t count, str pointer)


cdef class VariantWriter(Writer):
    cdef dict _branches
    cdef dict _own
    cdef int _null
    cdef bint _null_is_usual
    cdef str _pointer

    @cython.locals(index=int, branch=ScalarWriter)
    cpdef write(self, Buffer out, object value, Extras notes)
    @cython.locals(branch=ScalarWriter)
    cdef int _converting(self, object value) except -1


@cython.final
cdef class ArrayWriter(Writer):
    cdef Writer _items
    cdef str _pointer

    @cython.locals(i=Py_ssize_t, noted=Py_ssize_t, writer=Writer)
    cdef _write_items(self, Buffer out, list items, Extras notes)


@cython.final
cdef class MapWriter(Writer):
    cdef Writer _values
    cdef str _pointer

    cdef write_entries(self, Buffer out, dict entries, Py_ssize_t count, frozenset skipped, Extras notes)
    @cython.locals(noted=Py_ssize_t, writer=Writer, name=str)
    cdef _write_each(self, Buffer out, dict entries, frozenset skipped, Extras notes)


@cython.final
cdef class FieldWriter:
    cdef str name
    cdef Writer writer


cdef class RecordWriter(Writer):
    cdef tuple _fields
    cdef frozenset _known
    cdef str _pointer
    cdef Py_ssize_t _depth
    cdef tuple _required
    cdef MapWriter _rest

    @cython.locals(noted=Py_ssize_t, members=Py_ssize_t, present=Py_ssize_t)
    cpdef write(self, Buffer out, object value, Extras notes)
    @cython.locals(field=FieldWriter, present=Py_ssize_t)
    cdef Py_ssize_t _write_members(self, Buffer out, dict value, Extras notes) except -1
    cdef _note_unknown(self, dict value, Extras notes)


@cython.final
cdef class MessageWriter:
    cdef bint _opens_records
    cdef RecordWriter _record

    @cython.locals(out=Buffer, notes=Extras)
    cpdef bytes write(self, object value)
    cdef _write_opened(self, Buffer out, dict record, Extras notes)
