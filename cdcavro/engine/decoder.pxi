# A payload read value by value by Python, for which the engine has no program, as by `Decoder` in `avro/binary.py`.


cdef long long _MOST_ITEMS = MAX_COUNT


cdef long long _MOST_WEIGHTLESS = MAX_WEIGHTLESS


cdef Py_ssize_t _MOST_LEVELS = MAX_LEVELS


cdef class Decoder:
    """The bytes of one payload and the position up to which they are read. Attributes: `position` and `end` (int)."""

    cdef bytes _raw
    cdef const uint8_t *_start
    cdef Py_ssize_t _at
    cdef readonly Py_ssize_t end
    cdef long long _items, _weightless
    cdef Py_ssize_t _stated  # where the last block ends by the size that it states, -1 without one
    cdef Py_ssize_t _depth

    def __init__(self, bytes raw not None, Py_ssize_t position=0):
        self._raw = raw
        self._start = _start(raw)
        self.end = PyBytes_GET_SIZE(raw)
        self._stated = -1
        self.position = position

    @property
    def position(self):
        """How many bytes are read."""
        return self._at

    @position.setter
    def position(self, Py_ssize_t position):
        if not 0 <= position <= self.end:
            raise ValueError(f"a position from 0 to {self.end}, not {position}")
        self._at = position

    cdef int _byte(self) except -1:
        if self._at >= self.end:
            raise short("1 byte", self._at, self.end)
        self._at += 1
        return self._start[self._at - 1]

    cdef long long _long(self) except? -1:
        cdef uint64_t byte = self._byte()
        cdef uint64_t value = byte & 0x7F
        cdef int shift = 7
        while byte >= 0x80:
            if shift == 70:
                raise too_wide(self._at)
            byte = self._byte()
            if shift == 63 and 1 < byte < 0x80:
                raise too_wide(self._at)
            value |= (byte & 0x7F) << shift
            shift += 7
        if byte == 0 and shift > 7:
            raise not_canonical(self._at)
        return <long long>((value >> 1) ^ (0 - (value & 1)))

    cdef const uint8_t *_take(self, long long size) except NULL:
        if size < 0 or size > self.end - self._at:
            raise short(f"{size} bytes", self._at, self.end)
        self._at += size
        return self._start + self._at - size

    cdef str _text(self):
        cdef long long size = self._long()
        cdef const uint8_t *start = self._take(size)
        try:
            return PyUnicode_DecodeUTF8(<const char *>start, size, NULL)
        except UnicodeDecodeError as error:
            raise no_text(start[<Py_ssize_t>error.start], self._at) from error

    def read_byte(self):
        """Read one byte."""
        return self._byte()

    def read_long(self):
        """Read a zig-zag variable-length integer of at most 64 bits."""
        return self._long()

    def read_int(self):
        """Read a zig-zag variable-length integer of at most 32 bits."""
        cdef long long value = self._long()
        if not -(<long long>1 << 31) <= value < <long long>1 << 31:
            raise PayloadError("an integer of at most 32 bits", f"{value} at byte {self._at}")
        return value

    def take(self, long long size):
        """Read `size` bytes."""
        return PyBytes_FromStringAndSize(<const char *>self._take(size), size)

    def read_bytes(self):
        """Read bytes, preceded by their length."""
        cdef long long size = self._long()
        return PyBytes_FromStringAndSize(<const char *>self._take(size), size)

    def read_string(self):
        """Read a string: its length in bytes, then its UTF-8 bytes."""
        return self._text()

    def read_name(self):
        """Read a string that is likely to recur, such as a column's name."""
        return self._text()

    def skip_string(self):
        """Skip a string: its length and that many bytes."""
        self._take(self._long())

    def slice(self, Py_ssize_t start, Py_ssize_t end):
        """Return the bytes from one position to another."""
        return (<object>self._raw)[start:end]

    def read_boolean(self):
        """Read a boolean: a byte that is 0 or 1."""
        cdef int byte = self._byte()
        if byte > 1:
            raise PayloadError("a boolean, 0 or 1", f"{byte} at byte {self._at - 1}")
        return byte == 1

    def read_float(self):
        """Read a single-precision number: 4 bytes, IEEE 754, little-endian."""
        cdef float value
        memcpy(&value, self._take(4), 4)
        return value

    def read_double(self):
        """Read a double-precision number: 8 bytes, IEEE 754, little-endian."""
        cdef double value
        memcpy(&value, self._take(8), 8)
        return value

    def read_index(self, Py_ssize_t count, str what):
        """Read an index into `count` branches or symbols; `what` names them in the error."""
        cdef long long index = self._long()
        if not 0 <= index < count:
            raise PayloadError(f"{what} from 0 to {count - 1}", f"{index} at byte {self._at}")
        return index

    def read_block(self, bint is_weightless=False):
        """Read the number of items in the next block of an array or a map; 0 ends it. See `avro/binary.py`."""
        return self._block(is_weightless)

    def blocks(self, bint is_weightless=False):
        """Return an iterator over the numbers of items of blocks, which are read before the next is asked for."""
        return Blocks(self, is_weightless)

    cdef long long _block(self, bint is_weightless) except -1:
        cdef long long count = self._long(), size
        self._stated = -1
        if count < 0:
            size = self._long()
            if not 0 <= size <= self.end - self._at:
                raise self.short(f"a block of {size} bytes")
            self._stated = self._at + size
            if count < -self.end and (count < -_MOST_WEIGHTLESS or not is_weightless):
                raise self.short(f"{str(count)[1:]} items")
            count = -count
        if is_weightless:
            if count <= _MOST_WEIGHTLESS:
                self._weightless += count
            if count > _MOST_WEIGHTLESS or self._weightless > _MOST_WEIGHTLESS:
                raise PayloadError(f"at most {_MOST_WEIGHTLESS} items without bytes", f"more by byte {self._at}")
            return count
        if count > self.end - self._at or count > _MOST_ITEMS:
            raise self.short(f"{count} items")
        self._items += count
        if self._items > self.end:
            raise PayloadError("at most one item to a byte", f"{self._items} items by byte {self._at}")
        return count

    def descend(self, Py_ssize_t levels):
        """Go down a number of levels, each a record, an array or a map, in data that have no end by their schema."""
        self._depth += levels
        if self._depth > _MOST_LEVELS:
            expected = f"at most {_MOST_LEVELS} records, arrays and maps in each other"
            raise PayloadError(expected, f"more at byte {self._at}")
        return 0

    def ascend(self, Py_ssize_t levels):
        """Go up again."""
        self._depth -= levels
        return 0

    def short(self, expected):
        """Return the error for a payload that ends too early."""
        return short(expected, self._at, self.end)

    def finish(self):
        """Raise `PayloadError` unless every byte has been read."""
        if self._at != self.end:
            raise PayloadError(f"the end of the payload at byte {self._at}", f"{self.end - self._at} more")


cdef class Blocks:
    """The blocks of an array or a map: how many items each has. Raises for one that has not the size that it states."""

    cdef Decoder _source
    cdef bint _is_weightless
    cdef Py_ssize_t _start, _stated

    def __cinit__(self, Decoder source not None, bint is_weightless):
        self._source, self._is_weightless, self._stated = source, is_weightless, -1

    def __iter__(self):
        return self

    def __next__(self):
        cdef Py_ssize_t at = self._source._at
        cdef long long count
        if self._stated != -1 and self._stated != at:
            raise PayloadError(f"a block of {self._stated - self._start} bytes", f"{at - self._start} by byte {at}")
        count = self._source._block(self._is_weightless)
        if count == 0:
            raise StopIteration
        self._start, self._stated = self._source._at, self._source._stated
        return count
