cdef class Buffer:
    cdef unsigned char *_start
    cdef Py_ssize_t _size
    cdef Py_ssize_t _room
    cdef Py_ssize_t _views

    cdef int _check_views(self) except -1
    cdef int _grow(self, Py_ssize_t more) except -1
    cpdef int append(self, int byte) except -1
    cpdef int write_long(self, long long value) except -1
    cpdef bint fits(self, object value, long long most) except -1
    cpdef int write_string(self, str value) except -1
    cpdef int write_double(self, double value) except -1
    cpdef int write_raw(self, bytes raw) except -1
    cdef int append_raw(self, const char *start, Py_ssize_t size) except -1
    cpdef int write_again(self, Py_ssize_t start, Py_ssize_t end) except -1
    cpdef int cut(self, Py_ssize_t size) except -1
    cpdef bytes taken(self)


cdef class ByteReader:
    cdef bytes _raw
    cdef long long _items
    cdef long long _weightless
    cdef Py_ssize_t _depth
    cdef const unsigned char *_start
    cdef readonly Py_ssize_t position
    cdef readonly Py_ssize_t end

    cpdef int read_byte(self) except -1
    cpdef long long read_long(self) except? -1
    cdef const unsigned char *_take(self, long long size) except NULL
    cpdef bytes take(self, long long size)
    cpdef str read_string(self)
    cpdef bytes slice(self, Py_ssize_t start, Py_ssize_t end)
    cpdef skip_string(self)
    cpdef str read_name(self)
    cdef str _name(self, const unsigned char *start, Py_ssize_t size)
    cpdef double read_double(self) except? -1
