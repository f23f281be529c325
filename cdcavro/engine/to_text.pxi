# Payload to text: values and records.

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


cdef int _render_number(Run *r) noexcept nogil:
    cdef const uint8_t *start
    cdef const uint8_t *number
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef Py_ssize_t size
    if _read_string(r, &start, &size):
        return LEFT
    at, end = r.at, r.end
    r.at, r.end = start, at
    if _scan_number(r, &number) == 0 or r.at != at:
        return LEFT
    r.end = end
    return _put_few(r, start, size, end)


cdef int _render_json(Run *r, int level) noexcept nogil:
    """Put out the text of an object or array in its compact form."""
    cdef const uint8_t *start
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef Py_ssize_t size
    if _read_text(r, &start, &size):
        return LEFT
    at, end = r.at, r.end
    r.at, r.end = start, at
    _skip_space(r)
    if r.at >= r.end or (r.at[0] != 123 and r.at[0] != 91) or _copy_json(r, level):
        return LEFT
    _skip_space(r)
    if r.at != r.end:
        return LEFT
    r.end = end
    return OK


cdef int _render_column(Run *r, const Instruction *column, int level) noexcept nogil:
    cdef int index
    cdef int64_t whole
    cdef double value
    if _read_index(r, &index):
        return LEFT
    if index == column.a[4]:
        return _render_string(r)
    if index == column.a[0]:
        return _put_bytes(r, <const uint8_t *>b"null", 4)
    if index == column.a[2]:
        return _read_long(r, &whole) or _render_digits(r, whole)
    if index == column.a[3]:
        if r.end - r.at < 8:
            return LEFT
        memcpy(&value, r.at, 8)
        r.at += 8
        return _render_double(r, value)
    if index == column.a[5]:
        return _render_number(r)
    if index == column.a[1]:
        return _render_boolean(r)
    return _render_json(r, level) if index == column.a[6] else LEFT


cdef inline int _render_string(Run *r) noexcept nogil:
    cdef const uint8_t *start
    cdef Py_ssize_t size
    return _read_string(r, &start, &size) or _put_quoted(r, start, start + size, r.end)


cdef inline int _render_boolean(Run *r) noexcept nogil:
    if r.at >= r.end or r.at[0] > 1:
        return LEFT
    r.at += 1
    return _put_bytes(r, <const uint8_t *>b"true", 4) if (r.at - 1)[0] else _put_bytes(r, <const uint8_t *>b"false", 5)


cdef int _render_array(Run *r, const Instruction *array, int level) noexcept nogil:
    cdef int64_t count, i, outer = r.index
    if _put(r, 91) or _read_long(r, &count) or count < 0 or count > r.end - r.at or count > r.most_items:
        return LEFT
    if count:
        for i in range(count):
            r.index = i
            if (i and _put(r, 44)) or _render(r, array.a[0], level + 1):
                return LEFT
        r.index = outer
        if r.at >= r.end or r.at[0]:  # another block
            return LEFT
        r.at += 1
    return _put(r, 93)


cdef inline int _render_name(
    Run *r, int node, uint32_t own, const Instruction *record, int32_t **follows
) noexcept nogil:
    """Put out the name of an entry as a member's; it may not be that of a field of the record around it."""
    cdef Known *known = _guess(r, node, follows[0][0])
    cdef const uint8_t *start
    cdef Py_ssize_t size
    cdef int number
    if known != NULL:
        start = known.label
        if cdcavro_begins(r.at, r.end, start + known.label_size, known.size + 1):
            r.at += known.size + 1
            follows[0] = &known.next
            return _see(r, known, own) or _put_few(r, start, known.label_size, start + LONGEST)
    if _read_text(r, &start, &size) or (record != NULL and _find_member(r, record, start, size) >= 0):
        return LEFT
    if _meet(r, node, own, start, size, &number):
        return LEFT
    if number:
        follows[0][0] = number
        follows[0] = &_known_at(r.known, number).next
    return _put_quoted(r, start, start + size, r.end) or _put(r, 58)


cdef int _render_entries(Run *r, const Instruction *map, const Instruction *record, int level, bint first) noexcept nogil:
    """Put out the entries of a map as members."""
    cdef int64_t count
    cdef int node = <int>(map - r.code)
    cdef int32_t *follows = r.follows + r.count + node
    cdef uint32_t own
    cdef bint is_quick = _is_scalar_type(r, r.code + map.a[0])
    r.object += 1
    own = r.object
    if _read_long(r, &count) or count < 0 or count > r.end - r.at or count > r.most_items:
        return LEFT
    if count == 0:
        return OK
    while count:
        if is_quick:
            if _render_quick_entries(r, node, own, &follows, &count, &first):
                return LEFT
            if count == 0:
                break
        if not first and _put(r, 44):
            return LEFT
        first = False
        if _render_name(r, node, own, record, &follows) or _render(r, map.a[0], level):
            return LEFT
        count -= 1
    if r.at >= r.end or r.at[0]:
        return LEFT
    r.at += 1
    return OK


cdef int _render(Run *r, int node, int level) noexcept nogil:
    """Put out one value by the instruction of its type."""
    cdef const Instruction *type = r.code + node
    cdef int64_t value
    cdef int index
    if type.kind == OPTIONAL:
        if _read_index(r, &index):
            return LEFT
        if index == type.a[2]:
            return _put_bytes(r, <const uint8_t *>b"null", 4)
        if index != type.a[1]:
            return LEFT
        node = type.a[0]
        type = r.code + node
    if type.kind == COLUMN:
        return _render_column(r, type, level)
    if type.kind == STRING:
        return _render_string(r)
    if type.kind == LONG or type.kind == INT:
        if _read_long(r, &value) or (type.kind == INT and not -(<int64_t>1 << 31) <= value < <int64_t>1 << 31):
            return LEFT
        return _render_digits(r, value)
    if type.kind == ENUM:
        if _read_long(r, &value) or not 0 <= value < type.a[1]:
            return LEFT
        index = type.a[0] + 2 * <int>value
        return _put_bytes(r, r.texts + r.symbols[index], r.symbols[index + 1])
    if type.kind == MAP:
        return _put(r, 123) or _render_entries(r, type, NULL, level + 1, True) or _put(r, 125)
    if type.kind == ARRAY:
        return _render_array(r, type, level)
    if type.kind == RECORD:
        return _render_record(r, node, level)
    if type.kind == BOOLEAN:
        return _render_boolean(r)
    if type.kind == VARIANT:
        return _render_variant(r, type)
    return LEFT


cdef int _render_variant(Run *r, const Instruction *variant) noexcept nogil:
    cdef int index
    cdef int64_t value
    if _read_index(r, &index):
        return LEFT
    if index == variant.a[0]:
        return _put_bytes(r, <const uint8_t *>b"null", 4)
    if index == variant.a[2]:
        if _read_long(r, &value) or (variant.a[4] and not -(<int64_t>1 << 31) <= value < <int64_t>1 << 31):
            return LEFT
        return _render_digits(r, value)
    if index == variant.a[3]:
        return _render_string(r)
    return _render_boolean(r) if index == variant.a[1] else LEFT
