cimport cython

from cdcavro.avro.buffer cimport is_number
from cdcavro.exact.instants cimport from_local, to_local
from cdcavro.wire.writing.values cimport plain_text
from cdcavro.exact.jsontext cimport ExactNumber, integer, number, render


cpdef plain(object value)


@cython.final
cdef class Turner:
    cdef dict _turns
    cdef object _other

    @cython.locals(turns=dict, values=dict, turned=dict)
    cpdef dict turned(self, object row)
