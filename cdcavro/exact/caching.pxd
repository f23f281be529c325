cimport cython


@cython.final
cdef class WeightedCache:
    cdef Py_ssize_t _left
    cdef object _lock
    cdef Py_ssize_t _most
    cdef dict _values

    @cython.locals(entry=tuple)
    cpdef get(self, object key)
    cpdef put(self, object key, object value, Py_ssize_t weight)
    @cython.locals(entry=tuple)
    cdef _drop(self, object key)


cpdef Py_ssize_t weight_of(tuple columns)


@cython.final
cdef class IdentityCache:
    cdef WeightedCache _kept
    cdef object _function
    cdef tuple _last

    @cython.locals(last=tuple, entry=tuple)
    cpdef of(self, object first, object second=*)
