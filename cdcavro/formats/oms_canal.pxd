cimport cython

from cdcavro.change.images cimport check_images
from cdcavro.change.values.canal cimport Turner
from cdcavro.exact.caching cimport Kept, Remembered, weight_of
from cdcavro.exact.diff cimport same
from cdcavro.exact.instants cimport from_count, to_count
from cdcavro.exact.members cimport given, names_of
from cdcavro.wire.writing.values cimport scalar_text

cdef Kept _LAST
cdef Remembered _MEMBERS


@cython.locals(rows=list, olds=list, i=Py_ssize_t, turner=Turner)
cpdef list changes_of(dict record, str format, Remembered turners=*, object zone=*)
cdef _position(object event, object batch)
cdef _row(object whole, object row, object old, Py_ssize_t index, Py_ssize_t count)
@cython.locals(types=dict, codes=dict)
cdef tuple _table(dict record, object source)
@cython.locals(names=list, values=list, i=Py_ssize_t, name=str)
cdef bint _is_as(dict members, tuple last) except -1
cdef _message(list rows, str format, Turner turner)
cdef _old(object change, object image, Turner turner)
