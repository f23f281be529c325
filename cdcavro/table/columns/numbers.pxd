cimport cython

from cdcavro.avro.buffer cimport is_number
from cdcavro.exact.jsontext cimport ExactNumber

cdef tuple _POWERS
cdef tuple _LEAST
cdef Py_ssize_t _SHORT


@cython.locals(point=Py_ssize_t, places=Py_ssize_t)
cpdef unscaled(str text, Py_ssize_t scale, Py_ssize_t precision)
cpdef str number_text(object value, bint is_text=*)
cpdef bytes minimal_bytes(object value)
