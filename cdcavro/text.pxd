cimport cython


cdef class ExactNumber:
    cdef readonly str text


@cython.locals(value=double)
cpdef fraction(str text)
cpdef str escape(str name)
