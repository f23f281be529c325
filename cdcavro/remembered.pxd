cimport cython


@cython.final
cdef class Remembered:
    cdef dict _found
    cdef object _function
    cdef tuple _last

    @cython.locals(last=tuple, found=tuple)
    cpdef of(self, object first, object second=*)
