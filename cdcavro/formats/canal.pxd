cimport cython


@cython.final
cdef class Turner:
    cdef dict _turns
    cdef object _other

    @cython.locals(turns=dict, turned=dict)
    cdef dict _turned(self, dict row)
