# Text to payload: the members of a record, in the order of its fields, and the whole message.

cdef int _find_member(Run *r, const Instruction *record, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    cdef int i
    cdef const Member *member = r.members + record.a[0]
    for i in range(record.a[1]):
        if member.size == size + 3 and memcmp(r.texts + member.label + 1, start, size) == 0:
            return i
        member += 1
    return -1


cdef inline int _is_last_member(Run *r, bint *ended) noexcept nogil:
    _skip_space(r)
    if r.at >= r.end:
        return LEFT
    ended[0] = r.at[0] == 125
    if not ended[0] and r.at[0] != 44:
        return LEFT
    r.at += 1
    return OK


cdef int _note_unknown(Run *r, Cursor *c) noexcept nogil:
    """Note a member that the schema does not name; a slice behind those of the fields says which notes such members have."""
    cdef Py_ssize_t place = r.size
    cdef int number
    if c.known == NULL:
        if _meet(r, c.others, c.own, c.name, c.size, &number):
            return LEFT
        if number:
            c.follows[0] = c.record.a[1] + number
            c.known = _known_at(r.known, number)
    elif _see(r, c.known, c.own):
        return LEFT
    if c.known != NULL:
        c.follows = &c.known.next
    if r.depth == c.base + c.record.a[1] or r.slices[r.depth - 1].last_note != r.noted:
        if _push_slice(r, 1):
            return LEFT
        r.slices[r.depth - 1].start = r.slices[r.depth - 1].stop = place
        r.slices[r.depth - 1].first_note = r.noted
    _step(r, c.name, c.size, 0)
    if _copy_json(r, c.level + 1) or _note(r, r.out + place, r.size - place):
        return LEFT
    r.slices[r.depth - 1].last_note = r.noted
    r.stepped -= 1
    r.size = place
    return OK


cdef int _note_text(Run *r) noexcept nogil:
    """Note a string that stands in place of an object."""
    cdef Py_ssize_t place = r.size
    if _copy_string(r) or _note(r, r.out + place, r.size - place):
        return LEFT
    r.size = place
    return OK


cdef int _write_rest(Run *r, Cursor *c) noexcept nogil:
    """Write a member that has no field as an entry of the rest map, from the name on that `_write_name` wrote."""
    cdef Py_ssize_t last = r.depth - 1
    if _write(r, r.code[c.others].a[0], c.level + 1):
        return LEFT
    r.stepped -= 1
    if r.depth == c.base + c.record.a[1] or r.slices[last].stop != c.place or r.slices[last].last_note != c.noted:
        if _push_slice(r, 1):
            return LEFT
        last += 1
        r.slices[last].start = c.place
        r.slices[last].first_note = c.noted
    r.slices[last].stop = r.size
    r.slices[last].last_note = r.noted
    return OK


cdef int _write_unnamed(Run *r, Cursor *c) noexcept nogil:
    """Write a member that has no field."""
    c.unnamed += 1
    if c.record.a[3] and c.size == 5 and memcmp(c.name, b"value", 5) == 0:
        _skip_space(r)
        if r.at < r.end and r.at[0] == 123:
            # The value of a Kafka record, whose other members stand together in the extras.
            return LEFT
    if not c.has_rest:
        return _note_unknown(r, c)
    c.place, c.noted = r.size, r.noted
    return _write_name(r, c.others, c.own, c.known, c.name, c.size, &c.follows, c.record.a[1]) or _write_rest(r, c)


cdef inline int _take_member(Run *r, Cursor *c, int *index) noexcept nogil:
    """Pass the name of the next member by, and give the member's index, -1 if it has no field."""
    cdef int i = c.follows[0]
    cdef const Member *member = r.members + c.record.a[0] + i
    _skip_space(r)
    index[0] = i
    c.known = NULL
    if i >= c.record.a[1]:
        c.known = _take_guessed(r, c.others, i - c.record.a[1])
        if c.known != NULL:
            c.name, c.size = c.known.label + c.known.label_size + 1, c.known.size
            index[0] = -1
            return OK
    elif member.size and cdcavro_begins(r.at, r.end, r.texts + member.label, member.size):
        r.at += member.size
        c.follows = r.follows + c.record.a[0] + i
        return OK
    if _take_name(r, &c.name, &c.size):
        return LEFT
    i = _find_member(r, c.record, c.name, c.size)
    if i >= 0:
        c.follows[0] = i
        c.follows = r.follows + c.record.a[0] + i
    index[0] = i
    return OK


cdef inline int _write_member(Run *r, Cursor *c, int i) noexcept nogil:
    """Write the value of a member, which was begun with."""
    cdef const Member *member = r.members + c.record.a[0] + i
    cdef const Instruction *type = r.code + member.node
    cdef Slice *slice
    cdef Py_ssize_t place, noted = r.noted
    cdef int null
    _skip_space(r)
    if r.at >= r.end:
        return LEFT
    place = r.size
    _step_to(r, member)
    if r.at[0] == 110:
        null = _null_of(type)
        if member.missing > NULL_ or null < 0 or _take_word(r, b"null", 4) or _put(r, null << 1):
            return LEFT
        if member.missing == ABSENT and _note(r, <const uint8_t *>b"null", 4):
            return LEFT
    elif type.kind == OPTIONAL and type.a[3] and r.at[0] == 34:
        if _note_text(r) or _put(r, type.a[2] << 1):
            return LEFT
    elif _write(r, member.node, c.level + 1):
        return LEFT
    r.stepped -= 1
    slice = r.slices + c.base + i
    slice.state, slice.start, slice.stop, slice.first_note, slice.last_note = WRITTEN, place, r.size, noted, r.noted
    return OK


cdef int _write_members(Run *r, Cursor *c) noexcept nogil:
    """Write the members of a record as they come."""
    cdef int i, left
    cdef bint ended = False
    while not ended:
        i = c.follows[0]
        if i < c.record.a[1] and not _is_scalar_type(r, r.code + r.members[c.record.a[0] + i].node):
            i = -2
        else:
            left = _write_quick_members(r, c, &i)
            if left:
                return OK if left == ENDED else LEFT
        if i == -1:
            c.name, c.size = c.known.label + c.known.label_size + 1, c.known.size
        elif i == -2 and (_take_member(r, c, &i) or (i >= 0 and _place(r, c, i))):
            return LEFT
        if _write_unnamed(r, c) if i < 0 else _write_member(r, c, i):
            return LEFT
        if _is_last_member(r, &ended):
            return LEFT
    return OK


cdef int _append_slice(Run *r, Slice *slice) noexcept nogil:
    cdef Py_ssize_t size = slice.stop - slice.start
    if _reserve(r, size):
        return LEFT
    cdcavro_copy(r.out + r.size, r.out + slice.start, size, r.out + r.size)
    r.size += size
    return OK


cdef int _assemble(Run *r, const Instruction *record, Py_ssize_t begin, Py_ssize_t base, int64_t rest) noexcept nogil:
    """Bring the members of a record, which were written from `begin` on, into their order."""
    cdef Py_ssize_t end = r.size, i
    for i in range(base, base + record.a[1]):
        if record.a[0] + i - base != record.a[2]:
            if _append_slice(r, r.slices + i):
                return LEFT
        elif rest and _put_long(r, rest):
            return LEFT
    for i in range(base + record.a[1], r.depth):
        if _append_slice(r, r.slices + i):
            return LEFT
    if record.a[2] >= 0 and _put(r, 0):
        return LEFT
    memmove(r.out + begin, r.out + end, r.size - end)
    r.size = begin + r.size - end
    return OK


cdef int _write_record(Run *r, int node, int level) noexcept nogil:
    cdef const Instruction *record = r.code + node
    cdef Py_ssize_t begin = r.size
    cdef Py_ssize_t noted = r.noted
    cdef Cursor c
    cdef bint notes
    if r.at[0] != 123 or level > r.most_levels or _push_slice(r, record.a[1]):
        return LEFT
    r.object += 1
    c.record, c.level, c.own, c.base, c.follows = record, level, r.object, r.depth - record.a[1], r.follows + r.count + node
    c.has_rest = record.a[2] >= 0
    c.others = r.members[record.a[2]].node if c.has_rest else node
    c.last, c.shuffled, c.gaps, c.unnamed = -1, c.has_rest, False, 0
    memset(r.slices + c.base, 0, record.a[1] * sizeof(Slice))
    r.at += 1
    _skip_space(r)
    if r.at < r.end and r.at[0] == 125:
        r.at += 1
    elif _write_members(r, &c):
        return LEFT
    if c.last + 1 < record.a[1] and _leave_out(r, &c, c.last + 1, record.a[1]):
        return LEFT
    notes = r.noted != noted
    if (c.gaps and _check_gaps(r, &c, &notes)) or (notes and _order_notes(r, record, c.base, noted)):
        return LEFT
    if c.unnamed > r.most_items or (c.shuffled and _assemble(r, record, begin, c.base, c.unnamed)):
        return LEFT
    r.depth = c.base
    return OK


cdef int _check_gaps(Run *r, Cursor *c, bint *notes) noexcept nogil:
    """Stop if a member was left out that has to be there, and say whether there is one that has to be noted."""
    cdef const Member *member = r.members + c.record.a[0]
    cdef int i
    for i in range(c.record.a[1]):
        if r.slices[c.base + i].state == LEFT_OUT:
            if member[i].missing == REQUIRED:
                return LEFT
            if member[i].missing == NULL_:
                notes[0] = True
    return OK


cdef int _write_variant(Run *r, const Instruction *variant) noexcept nogil:
    cdef uint8_t c = r.at[0]
    if c == 34:
        return LEFT if variant.a[3] < 0 else _put(r, variant.a[3] << 1) or _write_string(r)
    if c == 116 or c == 102:
        return LEFT if variant.a[1] < 0 else _put(r, variant.a[1] << 1) or _write_boolean(r)
    return LEFT if variant.a[2] < 0 or c == 34 else _put(r, variant.a[2] << 1) or _write_integer(r, variant.a[4])


cdef int _write_boolean(Run *r) noexcept nogil:
    if r.at[0] == 116:
        return _take_word(r, b"true", 4) or _put(r, 1)
    return _take_word(r, b"false", 5) or _put(r, 0)


cdef int _write(Run *r, int node, int level) noexcept nogil:
    """Write one value by the instruction of its type; `level` is how deep it would nest."""
    cdef const Instruction *type = r.code + node
    _skip_space(r)
    if r.at >= r.end:
        return LEFT
    if type.kind == OPTIONAL:
        if r.at[0] == 110:
            return _take_word(r, b"null", 4) or _put(r, type.a[2] << 1)
        if _put(r, type.a[1] << 1):
            return LEFT
        node = type.a[0]
        type = r.code + node
    if type.kind == COLUMN:
        return _write_column(r, type, level)
    if type.kind == STRING:
        return _write_plain(r)
    if type.kind == LONG or type.kind == INT:
        return _write_integer(r, type.kind == INT)
    if type.kind == ENUM:
        return _write_enum(r, type)
    if type.kind == MAP:
        return _write_map(r, type, level)
    if type.kind == ARRAY:
        return _write_array(r, type, level)
    if type.kind == RECORD:
        return _write_record(r, node, level)
    if type.kind == BOOLEAN:
        return _write_boolean(r)
    if type.kind == VARIANT:
        if r.at[0] == 110:
            return _take_word(r, b"null", 4) or _put(r, type.a[0] << 1)
        return _write_variant(r, type)
    return LEFT
