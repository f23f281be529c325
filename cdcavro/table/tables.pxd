cimport cython

from cdcavro.change.order cimport split_key_change
from cdcavro.table.evolution.limits cimport SharedLimits
from cdcavro.table.writer cimport TableWriter


@cython.final
cdef class _Learned:
    cdef object _source
    cdef object _columns
    cdef Py_ssize_t _edits
    cdef readonly tuple table_version

    cdef bint is_for(self, object change, Py_ssize_t edits) except -1


cdef class Tables:
    cdef object __weakref__
    cdef object _given
    cdef readonly object given_table
    cdef object _zone
    cdef object _modes
    cdef object _directory
    cdef object _follower
    cdef bint _is_strict
    cdef dict _names
    cdef dict _writers
    cdef SharedLimits _room
    cdef TableWriter _recent
    cdef _Learned _learned
    cdef public dict misfits

    cpdef list add(self, object change)
    cpdef named(self, object change)
    @cython.locals(learned=_Learned)
    cpdef learn(self, object change)
    @cython.locals(writer=TableWriter, typed=list)
    cpdef list write(self, object change, object found)
    cdef _forget(self)
    cdef tuple _row(self, object change, object name)
    cdef list _emptied(self, object change)
    cdef _name(self, object source)
    cdef _completed(self, object change, object schema)
    @cython.locals(recent=TableWriter, writer=TableWriter)
    cdef TableWriter _writer(self, object table, object schema, object change)


cdef list _rows(object change)
