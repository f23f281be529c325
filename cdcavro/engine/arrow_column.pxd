cimport cython

from cdcavro.avro.buffer cimport Buffer, Slices

cdef Py_ssize_t _LAST_BIT


@cython.locals(
    data=Buffer, offsets=Buffer, validity=Buffer, raw=bytes, bits=int, nulls=Py_ssize_t, i=Py_ssize_t
)
cpdef pack(Slices values, object convert, object caught=*, Py_ssize_t most=*)
cdef bytes _converted(Slices values, Py_ssize_t i, object convert, object caught)
