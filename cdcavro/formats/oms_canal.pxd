cimport cython

from cdcavro.change.images cimport check_images
from cdcavro.change.values.canal cimport RowConverter
from cdcavro.exact.caching cimport WeightedCache, IdentityCache, weight_of
from cdcavro.exact.diff cimport same
from cdcavro.exact.instants cimport from_count, to_count
from cdcavro.exact.members cimport given, member_names, text_or_none

cdef WeightedCache _LAST
cdef IdentityCache _MEMBERS


@cython.locals(rows=list, olds=list, i=Py_ssize_t, converter=RowConverter)
cpdef list changes_of(dict record, str format, IdentityCache converters=*, object zone=*)
cdef _position(object event, object batch)
cdef _row(object whole, object row, object old, Py_ssize_t index, Py_ssize_t count)
@cython.locals(types=dict, codes=dict)
cdef tuple _table(dict record, object source)
@cython.locals(names=list, values=list, i=Py_ssize_t, name=str)
cdef bint _is_same(dict members, tuple last) except -1
cdef _message(list rows, str format, RowConverter converter)
cdef _old(object change, object image, RowConverter converter)
