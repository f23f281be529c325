cimport cython

from cdcavro.exact.instants cimport from_local, to_local
from cdcavro.exact.jsontext cimport render
from cdcavro.exact.numbers cimport ExactNumber, integer, number, plain_text
from cdcavro.exact.scan cimport is_number


cpdef plain_value(object value)


@cython.final
cdef class RowConverter:
    cdef dict _converters
    cdef object _default

    @cython.locals(converters=dict, values=dict, converted=dict)
    cpdef dict convert(self, object row)
