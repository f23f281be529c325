"""The same classes as in `buffer.py`, over C pointers."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from cdcavro.avro.binary import no_text, short, too_wide

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    str PyUnicode_DecodeUTF8(const char *start, Py_ssize_t size, const char *errors)

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    /* Swaps a double between the machine's byte order and Avro's, which is little-endian. */
    static void cdcavro_swap(unsigned char *bytes) {
        const uint16_t one = 1;
        if (*(const unsigned char *)&one) return;
        for (int i = 0; i < 4; i++) {
            unsigned char byte = bytes[i];
            bytes[i] = bytes[7 - i];
            bytes[7 - i] = byte;
        }
    }

    /* FNV-1a, folded. */
    static uint32_t cdcavro_hash(const unsigned char *start, ptrdiff_t size) {
        uint32_t hash = 2166136261u;
        for (ptrdiff_t i = 0; i < size; i++) hash = (hash ^ start[i]) * 16777619u;
        return hash ^ (hash >> 15);
    }

    #define CDCAVRO_ALL(byte) (0x0101010101010101u * (byte))

    /* Whether any of eight bytes is escaped in JSON or is not ASCII. */
    static int cdcavro_is_special(const unsigned char *at) {
        uint64_t eight, quotes, escapes;
        memcpy(&eight, at, 8);
        quotes = eight ^ CDCAVRO_ALL('"');
        escapes = eight ^ CDCAVRO_ALL(92);
        return ((eight | (eight - CDCAVRO_ALL(32)) | (quotes - CDCAVRO_ALL(1)) | (escapes - CDCAVRO_ALL(1)))
                & CDCAVRO_ALL(0x80)) != 0;
    }

    /* Whether a string is ASCII and needs no escapes in JSON. */
    static int cdcavro_is_plain(const unsigned char *start, ptrdiff_t size) {
        unsigned char last[8];
        if (size >= 8) {
            for (ptrdiff_t i = 0; i < size - 8; i += 8)
                if (cdcavro_is_special(start + i)) return 0;
            return !cdcavro_is_special(start + size - 8);
        }
        memset(last, 'a', 8);
        for (ptrdiff_t i = 0; i < size; i++) last[i] = start[i];
        return !cdcavro_is_special(last);
    }
    """
    void cdcavro_swap(unsigned char *bytes) noexcept
    uint32_t cdcavro_hash(const unsigned char *start, ptrdiff_t size) noexcept
    bint cdcavro_is_plain(const unsigned char *start, ptrdiff_t size) noexcept

COMPILED = True

cdef enum:
    FIRST_ROOM = 4096
    NAMES = 1024
    NAME_BYTES = 64

# Recent names by hash, so that a column's name is the same object in many messages. A new name replaces the one with
# its hash.
cdef list _names = [None] * NAMES

# The memory of the buffer that was freed last, for the next one.
cdef unsigned char *_spare = NULL


@cython.freelist(4)
@cython.final
cdef class Buffer:
    """A growing payload or JSON text; `append` appends one byte."""

    def __cinit__(self):
        global _spare
        self._start = _spare if _spare is not NULL else <unsigned char *>PyMem_Malloc(FIRST_ROOM)
        _spare = NULL
        if self._start is NULL:
            raise MemoryError
        self._room = FIRST_ROOM

    def __dealloc__(self):
        global _spare
        if self._room == FIRST_ROOM and _spare is NULL:
            _spare = self._start
        else:
            PyMem_Free(self._start)

    def __len__(self):
        return self._size

    def __bytes__(self):
        return self.taken()

    cpdef bytes taken(self):
        """Return a copy of the bytes written so far."""
        return PyBytes_FromStringAndSize(<char *>self._start, self._size)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self._start, self._size, 1, flags)
        self._views += 1
        # From now on anything that appends has to ask for room, and is refused.
        self._room = self._size

    def __releasebuffer__(self, Py_buffer *view):
        self._views -= 1

    cdef int _check_views(self) except -1:
        if self._views:
            raise BufferError("Existing exports of data: object cannot be re-sized")
        return 0

    cdef int _grow(self, Py_ssize_t more) except -1:
        self._check_views()
        cdef Py_ssize_t room = self._size + more + (self._size >> 1)
        cdef void *start = PyMem_Realloc(self._start, room)
        if start is NULL:
            raise MemoryError
        self._start = <unsigned char *>start
        self._room = room
        return 0

    cpdef int append(self, int byte) except -1:
        """Append one byte."""
        if self._size == self._room:
            self._grow(1)
        self._start[self._size] = byte
        self._size += 1
        return 0

    cpdef int write_long(self, long long value) except -1:
        """Append a zig-zag variable-length integer of at most 64 bits."""
        cdef uint64_t zigzag = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
        if self._room - self._size < 10:
            self._grow(10)
        cdef unsigned char *at = self._start + self._size
        while zigzag >= 0x80:
            at[0] = <unsigned char>(zigzag & 0x7F | 0x80)
            at += 1
            zigzag >>= 7
        at[0] = <unsigned char>zigzag
        self._size = at + 1 - self._start
        return 0

    cpdef bint fits(self, object value, long long most) except -1:
        """Return whether an integer is between `-most - 1` and `most`, both included."""
        cdef int overflow
        cdef long long whole = PyLong_AsLongLongAndOverflow(value, &overflow)
        return overflow == 0 and -most - 1 <= whole <= most

    cpdef int write_string(self, str value) except -1:
        """Append a string: its length in bytes, then its UTF-8 bytes."""
        cdef Py_ssize_t size
        if value is None:
            raise TypeError("a string is str, not None")
        cdef const char *raw = PyUnicode_AsUTF8AndSize(value, &size)
        if self._room - self._size < size + 10:
            self._grow(size + 10)
        if size < 64:
            self._start[self._size] = <unsigned char>(size << 1)
            self._size += 1
        else:
            self.write_long(size)
        memcpy(self._start + self._size, raw, size)
        self._size += size
        return 0

    cpdef int write_double(self, double value) except -1:
        """Append a double-precision number: 8 bytes, IEEE 754, little-endian."""
        if self._room - self._size < 8:
            self._grow(8)
        memcpy(self._start + self._size, &value, 8)
        cdcavro_swap(self._start + self._size)
        self._size += 8
        return 0

    cpdef int write_raw(self, bytes raw) except -1:
        """Append bytes as they are."""
        if raw is None:
            raise TypeError("bytes are not None")
        return self.append_raw(PyBytes_AS_STRING(raw), PyBytes_GET_SIZE(raw))

    cdef int append_raw(self, const char *start, Py_ssize_t size) except -1:
        if self._room - self._size < size:
            self._grow(size)
        memcpy(self._start + self._size, start, size)
        self._size += size
        return 0

    cpdef int write_again(self, Py_ssize_t start, Py_ssize_t end) except -1:
        """Append a copy of the bytes from one place in the buffer to another."""
        if not 0 <= start <= end <= self._size:
            raise ValueError(f"from {start} to {end} of {self._size} bytes")
        if self._room - self._size < end - start:
            self._grow(end - start)
        memcpy(self._start + self._size, self._start + start, end - start)
        self._size += end - start
        return 0

    cpdef int cut(self, Py_ssize_t size) except -1:
        """Drop everything after the first `size` bytes."""
        if 0 <= size < self._size:
            self._check_views()
            self._size = size
        return 0


cdef class ByteReader:
    """The bytes of one payload and the position up to which they are read.

    Attributes: `position` and `end` (int), in bytes. Every length is checked against the bytes that
    are left before anything is built from it.
    """

    def __init__(self, bytes raw not None, Py_ssize_t position=0):
        self._raw = raw
        self._start = <const unsigned char *>PyBytes_AS_STRING(raw)
        self.end = PyBytes_GET_SIZE(raw)
        if not 0 <= position <= self.end:
            raise short("a position in the payload", position, self.end)
        self.position = position

    cpdef int read_byte(self) except -1:
        """Read one byte."""
        if self.position >= self.end:
            raise short("1 byte", self.position, self.end)
        self.position += 1
        return self._start[self.position - 1]

    cpdef long long read_long(self) except? -1:
        """Read a zig-zag variable-length integer of at most 64 bits."""
        cdef uint64_t byte
        if self.position < self.end:
            byte = self._start[self.position]
            if byte < 0x80:
                self.position += 1
                return <long long>((byte >> 1) ^ (0 - (byte & 1)))
        byte = self.read_byte()
        cdef uint64_t value = byte & 0x7F
        cdef int shift = 7
        while byte >= 0x80:
            if shift == 70:
                raise too_wide(self.position)
            byte = self.read_byte()
            if shift == 63 and 1 < byte < 0x80:
                raise too_wide(self.position)
            value |= (byte & 0x7F) << shift
            shift += 7
        return <long long>((value >> 1) ^ (0 - (value & 1)))

    cdef const unsigned char *_take(self, long long size) except NULL:
        if size < 0 or size > self.end - self.position:
            raise short(f"{size} bytes", self.position, self.end)
        self.position += size
        return self._start + self.position - size

    cpdef bytes take(self, long long size):
        """Read `size` bytes."""
        return PyBytes_FromStringAndSize(<const char *>self._take(size), size)

    cpdef str read_string(self):
        """Read a string: its length in bytes, then its UTF-8 bytes."""
        cdef long long size = self.read_long()
        return _text(self._take(size), size, self.position)

    cpdef bytes slice(self, Py_ssize_t start, Py_ssize_t end):
        """Return the bytes from one position to another."""
        return self._raw[start:end]

    cpdef skip_string(self):
        """Skip a string: its length and that many bytes."""
        self._take(self.read_long())

    cpdef str read_name(self):
        """Read a string that is likely to recur, such as a column's name."""
        cdef long long size = self.read_long()
        return self._name(self._take(size), size)

    cdef str _name(self, const unsigned char *start, Py_ssize_t size):
        cdef Py_ssize_t known_size
        cdef const char *known
        if size > NAME_BYTES:
            return _text(start, size, self.position)
        cdef Py_ssize_t place = cdcavro_hash(start, size) % NAMES
        name = _names[place]
        if name is not None:
            known = PyUnicode_AsUTF8AndSize(name, &known_size)
            if known_size == size and memcmp(known, start, size) == 0:
                return <str>name
        name = _text(start, size, self.position)
        _names[place] = name
        return <str>name

    cpdef double read_double(self) except? -1:
        """Read a double-precision number: 8 bytes, IEEE 754, little-endian."""
        cdef double value
        memcpy(&value, self._take(8), 8)
        cdcavro_swap(<unsigned char *>&value)
        return value


cdef str _text(const unsigned char *start, Py_ssize_t size, Py_ssize_t position):
    try:
        return PyUnicode_DecodeUTF8(<const char *>start, size, NULL)
    except UnicodeDecodeError as error:
        raise no_text(start[error.start], position) from error
