# Values of payloads passed by.

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
