cimport cython

from cdcavro.buffer cimport is_number
from cdcavro.instants cimport from_local, to_local
from cdcavro.scalars cimport plain_text
from cdcavro.text cimport ExactNumber, integer, number, render


cpdef plain(object value)


@cython.final
cdef class Turner:
    cdef dict _turns
    cdef object _other

    @cython.locals(turns=dict, values=dict, turned=dict)
    cpdef dict turned(self, object row)
