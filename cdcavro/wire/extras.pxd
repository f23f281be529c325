cimport cython

from cdcavro.avro.buffer cimport Buffer


@cython.final
cdef class Extras:
    cdef list _entries
    cdef readonly Py_ssize_t count

    cpdef add(self, str pointer, str value)
    cpdef below(self, str pointer, Py_ssize_t since)
    cpdef first(self, Py_ssize_t since, Py_ssize_t middle)
    cpdef write(self, Buffer out)



@cython.locals(pointer=str, value=str, name=str)
cpdef apply(dict record, object extras, object places=*)
cdef _check_step(str pointer, str value, object extras, object places)
cdef tuple _split(str pointer, object places)
@cython.locals(checked=list, name=str, token=str)
cpdef bint take(dict record, list checked) except -1
cdef bint _is_plain(str value) except -1
cdef _put(object parent, str name, str pointer, str value)
@cython.locals(end=Py_ssize_t)
cdef _check(str pointer, object extras)
@cython.locals(parent=str)
cdef _check_apart(str pointer, tuple above, object extras)
@cython.locals(bare=str)
cdef _check_place(str pointer, str value, object place)
@cython.locals(token=str)
cdef _parent(object record, object tokens, str pointer)
