# Avro's binary form: bytes put out, data read back, and data of a type passed by.


cdef enum:
    VARINT = 10  # bytes of the longest integer


cdef inline int _reserve(Run *r, Py_ssize_t more) noexcept nogil:
    """Make room for more bytes; behind them is always room for SLACK."""
    return OK if r.room - r.size >= more else cdcavro_grow(&r.out, &r.room, more)


cdef inline int _put(Run *r, uint8_t byte) noexcept nogil:
    if _reserve(r, 1):
        return LEFT
    r.out[r.size] = byte
    r.size += 1
    return OK


cdef inline int _put_bytes(Run *r, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    if _reserve(r, size):
        return LEFT
    memcpy(r.out + r.size, start, size)
    r.size += size
    return OK


cdef inline int _put_few(Run *r, const uint8_t *start, Py_ssize_t size, const uint8_t *end) noexcept nogil:
    """Put out bytes, of which there are few as a rule, and up to `end` may be read."""
    if _reserve(r, size):
        return LEFT
    cdcavro_copy(r.out + r.size, start, size, end)
    r.size += size
    return OK


cdef inline int _put_long(Run *r, int64_t value) noexcept nogil:
    if _reserve(r, VARINT):
        return LEFT
    r.size += cdcavro_varint(r.out + r.size, (<uint64_t>value << 1) ^ <uint64_t>(value >> 63))
    return OK


cdef int _insert_long(Run *r, Py_ssize_t place, Py_ssize_t gap, int64_t value) noexcept nogil:
    """Write an integer at a place, before what was written `gap` bytes behind it, and close the gap."""
    cdef uint8_t text[VARINT]
    cdef int size = cdcavro_varint(text, <uint64_t>value << 1)
    if size != gap:
        if _reserve(r, VARINT):
            return LEFT
        memmove(r.out + place + size, r.out + place + gap, r.size - place - gap)
        r.size += size - gap
    memcpy(r.out + place, text, size)
    return OK


cdef inline int _read_long(Run *r, int64_t *value) noexcept nogil:
    """Read an integer in its canonical form."""
    cdef uint64_t read = 0
    cdef int shift = 0
    cdef uint8_t byte
    while r.at < r.end:
        byte = r.at[0]
        r.at += 1
        if shift == 63 and byte > 1:
            return LEFT
        read |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            if byte == 0 and shift:
                return LEFT
            value[0] = <int64_t>(read >> 1) ^ -<int64_t>(read & 1)
            return OK
        shift += 7
        if shift > 63:
            return LEFT
    return LEFT


cdef inline int _read_string(Run *r, const uint8_t **start, Py_ssize_t *size) noexcept nogil:
    """Pass a string by."""
    cdef int64_t length
    if r.at < r.end and r.at[0] < 0x80 and r.at[0] & 1 == 0:
        length = r.at[0] >> 1
        r.at += 1
    elif _read_long(r, &length) or length < 0:
        return LEFT
    if length > r.end - r.at:
        return LEFT
    start[0] = r.at
    size[0] = <Py_ssize_t>length
    r.at += length
    return OK


cdef inline int _read_text(Run *r, const uint8_t **start, Py_ssize_t *size) noexcept nogil:
    """Pass a string by, which must be UTF-8."""
    return LEFT if _read_string(r, start, size) or not cdcavro_is_utf8(start[0], r.at) else OK


cdef inline int _read_index(Run *r, int *index) noexcept nogil:
    """Read the index of a branch of a union, of which there are few."""
    if r.at >= r.end or r.at[0] & 1 or r.at[0] >= 0x80:
        return LEFT
    index[0] = r.at[0] >> 1
    r.at += 1
    return OK


cdef inline int _read_count(Run *r, int64_t *count) noexcept nogil:
    """Read the number of items of the only block; all arrays and maps together have at most one item to a byte."""
    if _read_long(r, count) or count[0] < 0 or count[0] > r.end - r.at or count[0] > r.items_left:
        return LEFT
    if count[0] > r.most_items:
        return LEFT
    r.items_left -= count[0]
    return OK


cdef inline int _read_end(Run *r) noexcept nogil:
    """Read the end of an array or a map; stop at another block."""
    if r.at >= r.end or r.at[0]:
        return LEFT
    r.at += 1
    return OK


cdef int _skip(Run *r, int node) noexcept nogil:
    """Pass one value by, without a look at its texts."""
    cdef const Instruction *type = r.code + node
    cdef int64_t value, i
    cdef int index
    if type.kind == OPTIONAL:
        if _read_index(r, &index):
            return LEFT
        if index == type.a[2]:
            return OK
        type = r.code + type.a[0]
    elif type.kind == VARIANT or type.kind == COLUMN:
        if _read_index(r, &index):
            return LEFT
        return _skip_branch(r, type, index)
    if type.kind == STRING:
        return _skip_text(r)
    if type.kind == LONG or type.kind == INT or type.kind == ENUM:
        return _read_long(r, &value)
    if type.kind == BOOLEAN:
        return _skip_bytes(r, 1)
    if type.kind == RECORD:
        for i in range(type.a[0], type.a[0] + type.a[1]):
            if r.members[i].missing != EXTRAS and _skip(r, r.members[i].node):
                return LEFT
        return OK
    if type.kind > VARIANT:
        return LEFT
    if type.kind != MAP and type.kind != ARRAY:
        return _skip(r, <int>(type - r.code))
    while True:
        # Items without bytes are no reason to go on for ever.
        if _read_long(r, &value) or value < 0 or value > r.end - r.at or value > r.items_left:
            return LEFT
        r.items_left -= value
        if value == 0:
            return OK
        for i in range(value):
            if (type.kind == MAP and _skip_text(r)) or _skip(r, type.a[0]):
                return LEFT


cdef inline int _skip_text(Run *r) noexcept nogil:
    cdef const uint8_t *start
    cdef Py_ssize_t size
    return _read_string(r, &start, &size)


cdef inline int _skip_bytes(Run *r, int size) noexcept nogil:
    if r.end - r.at < size:
        return LEFT
    r.at += size
    return OK


cdef inline int _skip_boolean(Run *r) noexcept nogil:
    """Pass a boolean by, which must be one."""
    if r.at >= r.end or r.at[0] > 1:
        return LEFT
    r.at += 1
    return OK


cdef int _skip_branch(Run *r, const Instruction *type, int index) noexcept nogil:
    cdef int64_t value
    if index == type.a[0]:
        return OK
    if index == type.a[1]:
        return _skip_bytes(r, 1)
    if index == type.a[2]:
        return _read_long(r, &value)
    if index == type.a[3] and type.kind == COLUMN:
        return _skip_bytes(r, 8)
    return _skip_text(r)
