cimport cython

from cdcavro.avro.buffer cimport Buffer
from cdcavro.table.rows cimport Cell, RowWriter, text_of, write_texts


cdef class TableWriter:
    cdef readonly object schema
    cdef tuple _starts
    cdef object _source
    cdef object _columns
    cdef object _format
    cdef bint _is_strict
    cdef RowWriter _rows
    cdef list _key

    cpdef bint is_for(self, object schema, object source, object columns) except -1
    @cython.locals(out=Buffer, is_snapshot=bint)
    cpdef bytes envelope(self, object change)
    @cython.locals(out=Buffer)
    cpdef bytes row(self, object image)
    @cython.locals(out=Buffer, cell=Cell)
    cpdef bytes key(self, object change)


cdef _write_place(Buffer out, object change)
cdef _write_times(Buffer out, object instant)
cdef _write_long(Buffer out, object value)
cdef _put_long(Buffer out, object value)
cdef _write_text(Buffer out, object value)
cdef _write_position(Buffer out, object numbers)
