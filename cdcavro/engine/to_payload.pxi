# Text to payload: values.

cdef int _write_string(Run *r) noexcept nogil:
    """Write the string whose opening quote is here."""
    cdef const uint8_t *start
    cdef Py_ssize_t size
    cdef uint32_t not_ascii
    cdef uint8_t *place
    # What a string puts out is never longer than what it takes, but for its length, which stands before it.
    if _reserve(r, r.end - r.at + VARINT):
        return LEFT
    r.at += 1
    start = r.at
    place = r.out + r.size
    r.at = cdcavro_copy_plain(place + 1, start, r.end, r.end, &not_ascii)
    if r.at >= r.end:
        return LEFT
    size = r.at - start
    if r.at[0] != 34:
        return _write_escaped(r, size)
    r.at += 1
    if size < 64:
        place[0] = <uint8_t>(size << 1)
        r.size += size + 1
        return OK
    r.size += cdcavro_varint(place, <uint64_t>size << 1)
    memcpy(r.out + r.size, start, size)
    r.size += size
    return OK


cdef int _write_escaped(Run *r, Py_ssize_t size) noexcept nogil:
    """Write the rest of a string, of which `size` bytes up to an escape stand one byte behind the end."""
    cdef Py_ssize_t place = r.size
    r.size += size + 1
    if _text(r):
        return LEFT
    return _insert_long(r, place, 1, r.size - place - 1)


cdef int _write_column(Run *r, const Instruction *column, int level) noexcept nogil:
    cdef uint8_t c = r.at[0]
    cdef const uint8_t *start
    cdef int kind
    cdef int64_t whole
    cdef double value
    cdef Py_ssize_t place
    if c == 34:
        return _put(r, column.a[4] << 1) or _write_string(r)
    if c == 110:
        return _take_word(r, b"null", 4) or _put(r, column.a[0] << 1)
    if c == 116:
        return _take_word(r, b"true", 4) or _put(r, column.a[1] << 1) or _put(r, 1)
    if c == 102:
        return _take_word(r, b"false", 5) or _put(r, column.a[1] << 1) or _put(r, 0)
    if c == 123 or c == 91:
        if _put(r, column.a[6] << 1) or _reserve(r, 5):
            return LEFT
        place = r.size
        r.size += 5
        if _copy_json(r, level):
            return LEFT
        return _insert_long(r, place, 5, r.size - place - 5)
    kind = _scan_number(r, &start)
    if kind == 0 or _reserve(r, VARINT + 1):
        return LEFT
    if kind == INTEGER and _as_long(start, r.at, &whole):
        r.out[r.size] = <uint8_t>(column.a[2] << 1)
        r.size += 1 + cdcavro_varint(r.out + r.size + 1, (<uint64_t>whole << 1) ^ <uint64_t>(whole >> 63))
        return OK
    if kind == FRACTION and _as_double(start, r.at, &value):
        r.out[r.size] = <uint8_t>(column.a[3] << 1)
        memcpy(r.out + r.size + 1, &value, 8)
        r.size += 9
        return OK
    return _put(r, column.a[5] << 1) or _put_long(r, r.at - start) or _put_bytes(r, start, r.at - start)


cdef int _write_integer(Run *r, bint is_int) noexcept nogil:
    """Write an integer; that of a string is noted."""
    cdef const uint8_t *start
    cdef int64_t value
    cdef bint quoted = r.at[0] == 34
    r.at += quoted
    if _scan_number(r, &start) != INTEGER or not _as_long(start, r.at, &value):
        return LEFT
    if quoted:
        if r.at >= r.end or r.at[0] != 34:
            return LEFT
        r.at += 1
        if _note(r, start - 1, r.at - start + 1):
            return LEFT
    if is_int and not -(<int64_t>1 << 31) <= value < <int64_t>1 << 31:
        return LEFT
    return _put_long(r, value)


cdef int _write_enum(Run *r, const Instruction *symbols) noexcept nogil:
    cdef const uint8_t *start = r.at
    cdef Py_ssize_t size
    cdef int i
    cdef const int32_t *symbol = r.symbols + symbols.a[0]
    if r.at[0] != 34:
        return LEFT
    r.at = cdcavro_plain(r.at + 1, r.end, r.end)
    if r.at >= r.end or r.at[0] != 34:
        return LEFT
    r.at += 1
    size = r.at - start
    for i in range(symbols.a[1]):
        if symbol[1] == size and i != symbols.a[2] and memcmp(start, r.texts + symbol[0], size) == 0:
            return _put_long(r, i)
        symbol += 2
    if _note(r, start, size):
        return LEFT
    symbol = r.symbols + symbols.a[3]
    for i in range(symbols.a[4]):
        if symbol[1] == size and memcmp(start, r.texts + symbol[0], size) == 0:
            return _put_long(r, symbol[2])
        symbol += 3
    return LEFT if symbols.a[2] < 0 else _put_long(r, symbols.a[2])


cdef int _write_plain(Run *r) noexcept nogil:
    """Write a string, or the text of another scalar, which is noted."""
    cdef const uint8_t *start = r.at
    cdef Py_ssize_t size
    if start[0] == 34:
        return _write_string(r)
    if start[0] == 116:
        if _take_word(r, b"true", 4):
            return LEFT
    elif start[0] == 102:
        if _take_word(r, b"false", 5):
            return LEFT
    elif _scan_number(r, &start) == 0:
        return LEFT
    size = r.at - start
    return _note(r, start, size) or _put_long(r, size) or _put_bytes(r, start, size)


cdef int _write_array(Run *r, const Instruction *array, int level) noexcept nogil:
    cdef Py_ssize_t place = r.size
    cdef int64_t count = 0
    if r.at[0] != 91 or level > r.most_levels or _put(r, 0):
        return LEFT
    r.at += 1
    _skip_space(r)
    if r.at < r.end and r.at[0] == 93:
        r.at += 1
        return OK
    while True:
        _step(r, NULL, 0, count)
        if _write(r, array.a[0], level + 1):
            return LEFT
        r.stepped -= 1
        count += 1
        _skip_space(r)
        if r.at >= r.end:
            return LEFT
        if r.at[0] == 93:
            r.at += 1
            break
        if _take(r, 44):
            return LEFT
    if count > r.most_items:
        return LEFT
    return _insert_long(r, place, 1, count) or _put(r, 0)


cdef inline int _write_name(
    Run *r,
    int node,
    uint32_t own,
    Known *known,
    const uint8_t *start,
    Py_ssize_t size,
    int32_t **follows,
    int others,
) noexcept nogil:
    """Write the name of an entry, which was passed by, and go down to it; `known` says which it is, if that was guessed.

    `follows` says where it stands which comes next; there are `others` before the first name.
    """
    cdef int number
    if known != NULL:
        if _see(r, known, own):
            return LEFT
    else:
        if _meet(r, node, own, start, size, &number):
            return LEFT
        if number == 0:
            _step(r, start, size, 0)
            return _put_long(r, size) or _put_few(r, start, size, r.end)
        follows[0][0] = others + number
        known = _known_at(r.known, number)
    follows[0] = &known.next
    start = known.label + known.label_size
    _step(r, start + 1, known.size, 0)
    return _put_few(r, start, known.size + 1, start + LONGEST)


cdef int _write_entries(Run *r, const Instruction *map, int level, int64_t *count) noexcept nogil:
    """Write the entries of a map, of which there is one at least."""
    cdef const uint8_t *start = NULL
    cdef Py_ssize_t size = 0
    cdef int node = <int>(map - r.code), left = OK
    cdef int32_t *follows = r.follows + r.count + node
    cdef Known *known
    cdef uint32_t own
    cdef bint ended = False, is_quick = _is_scalar_type(r, r.code + map.a[0])
    r.object += 1
    own = r.object
    while not ended:
        if is_quick:
            left = _write_quick_entries(r, node, own, &follows, count, &known)
        else:
            left = OK
            known = _take_guessed(r, node, follows[0])
        if left:
            if left == ENDED:
                break
            return LEFT
        _skip_space(r)
        if known != NULL:
            start, size = known.label + known.label_size + 1, known.size
        elif _take_name(r, &start, &size):
            return LEFT
        if _write_name(r, node, own, known, start, size, &follows, 0) or _write(r, map.a[0], level + 1):
            return LEFT
        r.stepped -= 1
        count[0] += 1
        if _is_last_member(r, &ended):
            return LEFT
    return OK


cdef int _write_map(Run *r, const Instruction *map, int level) noexcept nogil:
    cdef Py_ssize_t place = r.size
    cdef int64_t count = 0
    if r.at[0] != 123 or level > r.most_levels or _put(r, 0):
        return LEFT
    r.at += 1
    _skip_space(r)
    if r.at < r.end and r.at[0] == 125:
        r.at += 1
        return OK
    if _write_entries(r, map, level, &count):
        return LEFT
    if count > r.most_items:
        return LEFT
    return _insert_long(r, place, 1, count) or _put(r, 0)


cdef inline int _null_of(const Instruction *type) noexcept nogil:
    """Return the index of the branch that is null, -1 without one."""
    if type.kind == OPTIONAL:
        return type.a[2]
    if type.kind == VARIANT or type.kind == COLUMN:
        return type.a[0]
    return -1


cdef int _leave_out(Run *r, Cursor *c, int start, int stop) noexcept nogil:
    """Write null for the members from one to another, which have not come yet."""
    cdef const Member *first = r.members + c.record.a[0]
    cdef Slice *slices = r.slices + c.base
    cdef int i, null
    for i in range(start, stop):
        slices[i].start = r.size
        slices[i].state = LEFT_OUT
        c.gaps = c.gaps or first[i].missing <= REQUIRED
        if first[i].missing <= NULL_:
            null = _null_of(r.code + first[i].node)
            if null < 0 or _put(r, null << 1):
                return LEFT
        slices[i].stop = r.size
    return OK


cdef int _push_slice(Run *r, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t room
    cdef Slice *slices
    if r.slices_room - r.depth < count:
        room = r.slices_room * 2 + count
        slices = <Slice *>realloc(r.slices, room * sizeof(Slice))
        if slices == NULL:
            return LEFT
        r.slices = slices
        r.slices_room = room
    r.depth += count
    return OK
