# The engine of messages, for any number of threads: one message, lines of text, the payloads of a block, and the values
# of a column.


cdef enum:
    SHORT = 1 << 16  # bytes of a message that is converted before another thread would have its turn
    NEWLINE = 10


cdef int _write_unlocked(Run *r, const uint8_t *start, Py_ssize_t size) noexcept:
    """Write a message; other threads go on meanwhile if it is long enough to be worth it."""
    cdef int left
    if size <= SHORT:
        return _write_message(r, r.root, start, size)
    with nogil:
        left = _write_message(r, r.root, start, size)
    return left


cdef bytes _plain_bytes(given, str expected):
    """Return the bytes of what is like bytes."""
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(memoryview(given))
    raise TypeError(f"{expected}, not {type(given).__name__}")


cdef bytes _utf8(message):
    """Return a message that is no bytes as such, None for one that has no UTF-8."""
    if not isinstance(message, str):
        return _plain_bytes(message, "text is bytes or str")
    try:
        return message.encode()
    except UnicodeEncodeError:
        return None


cdef inline const uint8_t *_start(bytes raw) except NULL:
    if raw is None:
        raise TypeError("a text or a payload is bytes, not None")
    return <const uint8_t *>PyBytes_AS_STRING(raw)


cdef Py_ssize_t _write_lines(Run *r, const uint8_t *start, Py_ssize_t size, Py_ssize_t *position) noexcept nogil:
    """Append the payloads of lines; return their number."""
    cdef const uint8_t *line
    cdef const uint8_t *end
    cdef Py_ssize_t count = 0, kept
    while True:
        line = start + position[0]
        end = <const uint8_t *>memchr(line, NEWLINE, size - position[0])
        if end == NULL:
            return count
        kept = r.size
        if _write_message(r, r.root, line, end - line):
            r.size = kept
            return count
        position[0] = end + 1 - start
        count += 1


cdef Py_ssize_t _render_lines(
    Run *r, const uint8_t *start, Py_ssize_t size, Py_ssize_t *position, Py_ssize_t count, Py_ssize_t most
) noexcept nogil:
    """Append payloads as lines; return their number."""
    cdef Py_ssize_t done = 0, kept
    while done < count and r.size < most:
        kept = r.size
        if _render_message(r, r.root, start + position[0], size - position[0]) or _put(r, NEWLINE):
            r.size = kept
            break
        position[0] = r.at - start
        done += 1
    return done


cdef int _convert_value(Run *r, bint writes, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    if writes:
        return _write_message(r, r.root, start, size)
    if _render_message(r, r.root, start, size) or r.at != r.end:
        return LEFT
    return OK


cdef Py_ssize_t _convert_column(
    Run *r, bint writes, const Column *column, Py_ssize_t first, Py_ssize_t base, Py_ssize_t most
) noexcept nogil:
    """Append what the values of a column become, from an index on, and say where each ends; return their number."""
    cdef const uint8_t *data = <const uint8_t *>column.data.buf
    cdef const char *offsets = <const char *>column.offsets.buf
    cdef const uint8_t *validity = <const uint8_t *>column.validity.buf
    cdef Py_ssize_t i, at, kept
    cdef int32_t begin, end
    cdef int32_t *ends
    if r.ends_room < column.count - first:
        ends = <int32_t *>realloc(r.ends, (column.count - first) * sizeof(int32_t))
        if ends == NULL:
            return 0
        r.ends, r.ends_room = ends, column.count - first
    for i in range(column.count - first):
        at = column.first + first + i
        if not column.has_nulls or validity[at >> 3] >> (at & 7) & 1:
            memcpy(&begin, offsets + 4 * at, 4)
            memcpy(&end, offsets + 4 * at + 4, 4)
            if not 0 <= begin <= end <= column.data.len:
                return i
            kept = r.size
            if _convert_value(r, writes, data + begin, end - begin) or r.size > most - base:
                r.size = kept
                return i
        r.ends[i] = <int32_t>(base + r.size)
    return column.count - first


cdef class Engine:
    """The engine of one program (`Program`). Any number of threads may use it at once, each with a run of its own."""

    cdef bytes _code, _fields, _symbols, _texts
    cdef int _root, _levels
    cdef int64_t _items
    cdef Py_ssize_t _size
    # The runs that no thread uses, in each direction; they are taken and given back under the GIL.
    cdef Run *_writing
    cdef Run *_reading

    def __cinit__(self, program, *_):
        self._code, self._fields = program.code.tobytes(), program.fields.tobytes()
        self._symbols, self._texts = program.symbols.tobytes(), program.texts + bytes(SLACK)
        self._root = program.root
        self._levels, self._items, self._size = program.bounds

    def __dealloc__(self):
        _tear_down(self._writing)
        _tear_down(self._reading)

    cdef Run *_new_run(self) except NULL:
        """Return the state of runs in one direction, of which one is under way at a time."""
        cdef Run *r = <Run *>calloc(1, sizeof(Run))
        cdef Py_ssize_t nodes = len(self._code) // sizeof(Instruction), i
        cdef int j
        if r == NULL:
            raise MemoryError
        r.root = self._root
        r.code = <const Instruction *>PyBytes_AS_STRING(self._code)
        if r.root >= 0 and r.code[r.root].kind == RECORD:
            r.capitals = r.code[r.root].a[6] & CAPITALS
            r.is_brief = r.code[r.root].a[6] & IS_BRIEF
        r.members = <const Member *>PyBytes_AS_STRING(self._fields)
        r.symbols = <const int32_t *>PyBytes_AS_STRING(self._symbols)
        r.texts = <const uint8_t *>PyBytes_AS_STRING(self._texts)
        r.most_levels, r.most_items, r.most_size = self._levels, self._items, self._size
        r.count = <int>(len(self._fields) // sizeof(Member))
        r.follows = <int32_t *>calloc(nodes + r.count + 1, sizeof(int32_t))
        r.notes_room, r.names_room, r.tail_size = FIRST_NOTES, FIRST_NAMES, 1
        r.notes = <Note *>malloc(FIRST_NOTES * sizeof(Note))
        r.names = <Name *>calloc(FIRST_NAMES, sizeof(Name))
        r.nodes = <int>nodes
        r.patched = <int32_t *>calloc(r.count + nodes + 1, sizeof(int32_t))
        r.known = <NameTable *>calloc(1, sizeof(NameTable))
        if r.known == NULL or r.follows == NULL or r.notes == NULL or r.names == NULL or r.patched == NULL:
            _tear_down(r)
            raise MemoryError
        for i in range(nodes):
            if r.code[i].kind == RECORD:
                for j in range(r.code[i].a[1]):
                    r.follows[r.code[i].a[0] + j] = j + 1
        return r

    cdef Run *_borrow_run(self, Run **waiting) except NULL:
        """Return a run of one direction for this thread alone, with nothing put out."""
        cdef Run *r = waiting[0]
        if r == NULL:
            r = self._new_run()
        else:
            waiting[0] = r.next
            r.next = NULL
        r.size = 0
        return r

    cdef bytes _return_run(self, Run *r, Run **waiting, bint is_done):
        """Let a run wait for the next message, and return what it has put out; None if it did not come to its end."""
        try:
            return PyBytes_FromStringAndSize(<const char *>r.out, r.size) if is_done else None
        finally:
            _shrink(r)
            r.next = waiting[0]
            waiting[0] = r

    def encode(self, message):
        """Return a message as a payload; None where it is left to the exact way, as whatever is faulty is."""
        cdef bytes raw = message if type(message) is bytes else _utf8(message)
        if raw is None:
            return None
        cdef const uint8_t *start = _start(raw)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(raw)
        cdef Run *r
        cdef int left
        if self._root < 0:
            return None
        r = self._borrow_run(&self._writing)
        left = _write_unlocked(r, start, size)
        return self._return_run(r, &self._writing, left == OK)

    def is_plain(self, bytes raw):
        """Return whether a message is one that msgspec parses exactly, and that conforms to the schema or is noted."""
        cdef const uint8_t *start = _start(raw)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(raw)
        cdef Run *r
        cdef bint plain
        if self._root < 0:
            return False
        r = self._borrow_run(&self._writing)
        r.odd = False
        plain = _write_unlocked(r, start, size) == OK and not r.odd
        self._return_run(r, &self._writing, False)
        return plain

    def decode(self, payload):
        """Return a payload as text; None where it is left to the exact way."""
        cdef bytes raw = payload if type(payload) is bytes else _plain_bytes(payload, "a payload is bytes")
        cdef const uint8_t *start = _start(raw)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(raw)
        cdef Run *r
        cdef int left
        if self._root < 0:
            return None
        r = self._borrow_run(&self._reading)
        if size <= SHORT:
            left = _render_message(r, r.root, start, size)
        else:
            with nogil:
                left = _render_message(r, r.root, start, size)
        return self._return_run(r, &self._reading, left == OK and r.at == r.end)

    def encode_text(self, bytes text, Py_ssize_t position):
        """Return the payloads of the lines of a text from a position on, their number, and the position behind them.

        It stops at a line that is left to the exact way, and at what no line end stands behind.
        """
        cdef const uint8_t *start = _start(text)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(text), count
        cdef Run *r
        if not 0 <= position <= size:
            raise ValueError("the lines from a position in the text on")
        if self._root < 0:
            return b"", 0, position
        r = self._borrow_run(&self._writing)
        with nogil:
            count = _write_lines(r, start, size, &position)
        return self._return_run(r, &self._writing, True), count, position

    def decode_lines(self, bytes raw, Py_ssize_t position, Py_ssize_t count, Py_ssize_t most):
        """Return at most `count` payloads from a position on as lines, until they have `most` bytes.

        Also the position behind them, and their number; it stops at a payload that is left to the exact way.
        """
        cdef const uint8_t *start = _start(raw)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(raw), done
        cdef Run *r
        if not 0 <= position <= size:
            raise ValueError("the payloads from a position on")
        if self._root < 0:
            return b"", position, 0
        r = self._borrow_run(&self._reading)
        with nogil:
            done = _render_lines(r, start, size, &position, count, most)
        return self._return_run(r, &self._reading, True), position, done

    def encode_column(self, column, Py_ssize_t first, Py_ssize_t base, Py_ssize_t most):
        """Return the payloads of a column's texts (`Slices`) from an index on.

        With them come where each ends, and the index behind the last. The ends are counted on from `base`, as 32-bit
        integers. A null has no bytes. It stops at a value that is left to the exact way, as one is that ends behind
        `most`.
        """
        if self._root < 0:
            return b"", b"", first
        return self._convert(column, first, base, most, &self._writing)

    def decode_column(self, column, Py_ssize_t first, Py_ssize_t base, Py_ssize_t most):
        """Return the texts of a column's payloads, as `encode_column` does the other way."""
        if self._root < 0:
            return b"", b"", first
        return self._convert(column, first, base, most, &self._reading)

    cdef tuple _convert(self, column, Py_ssize_t first, Py_ssize_t base, Py_ssize_t most, Run **waiting):
        cdef Column values
        cdef Run *r
        cdef bint writes = waiting == &self._writing
        cdef Py_ssize_t done = 0
        cdef bytes ends
        _open_column(&values, column)
        try:
            if not 0 <= first <= values.count or not 0 <= base <= most < <Py_ssize_t>1 << 31:
                raise ValueError("the values from an index on, which end within 31 bits")
            r = self._borrow_run(waiting)
            try:
                with nogil:
                    done = _convert_column(r, writes, &values, first, base, most)
                ends = PyBytes_FromStringAndSize(<const char *>r.ends, done * sizeof(int32_t))
            except BaseException:
                self._return_run(r, waiting, False)
                raise
            return self._return_run(r, waiting, True), ends, first + done
        finally:
            _close_column(&values)
