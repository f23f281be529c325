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


cdef int _note_unknown(Run *r, uint32_t own, const uint8_t *start, Py_ssize_t size, int level) noexcept nogil:
    """Note a member that the schema does not name."""
    cdef Py_ssize_t place = r.size
    if _add_name(r, own, start, size) or _copy_json(r, level) or _push_slice(r, 1):
        return LEFT
    _step(r, start, size, 0)
    r.slices[r.depth - 1].start = r.slices[r.depth - 1].stop = place
    r.slices[r.depth - 1].first_note = r.noted
    if _note(r, r.out + place, r.size - place):
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


cdef int _write_rest(
    Run *r, int map, uint32_t own, const uint8_t *start, Py_ssize_t size, int level, Py_ssize_t first
) noexcept nogil:
    """Write a member that has no field as an entry of the rest map; slices from `first` on say where entries stand."""
    cdef Py_ssize_t place = r.size, noted = r.noted
    if _write_entry(r, r.code[map].a[0], own, start, size, level):
        return LEFT
    if r.depth == first or r.slices[r.depth - 1].stop != place or r.slices[r.depth - 1].last_note != noted:
        if _push_slice(r, 1):
            return LEFT
        r.slices[r.depth - 1].start = place
        r.slices[r.depth - 1].first_note = noted
    r.slices[r.depth - 1].stop = r.size
    r.slices[r.depth - 1].last_note = r.noted
    return OK


cdef int _write_members(Run *r, int node, Py_ssize_t base, int level, bint *shuffled, int64_t *rest) noexcept nogil:
    """Write the members of a record as they come; `base` is where its slices begin, `rest` counts those of no field."""
    cdef const Instruction *record = r.code + node
    cdef const Member *first = r.members + record.a[0]
    cdef const Member *member
    cdef const Instruction *type
    cdef const uint8_t *start
    cdef Py_ssize_t size, place, noted
    cdef Slice *slice
    cdef int last = -1, i, expected
    cdef int32_t *follows = r.follows + r.count + node
    cdef uint32_t own
    cdef bint ended = False
    r.object += 1
    own = r.object
    while True:
        _skip_space(r)
        expected = follows[0]
        i = -1
        if expected < record.a[1]:
            member = first + expected
            if member.size and r.end - r.at > member.size and memcmp(r.at, r.texts + member.label, member.size) == 0:
                i = expected
                r.at += member.size
        if i < 0:
            if _take_name(r, &start, &size):
                return LEFT
            i = _find_member(r, record, start, size)
            if i < 0:
                _skip_space(r)
                if record.a[3] and size == 5 and memcmp(start, b"value", 5) == 0 and r.at < r.end and r.at[0] == 123:
                    # The value of a Kafka record, whose other members stand together in the extras.
                    return LEFT
                if record.a[2] < 0:
                    if _note_unknown(r, own, start, size, level + 1):
                        return LEFT
                elif _write_rest(r, r.members[record.a[2]].node, own, start, size, level + 1, base + record.a[1]):
                    return LEFT
                rest[0] += 1
                if _is_last_member(r, &ended):
                    return LEFT
                if ended:
                    break
                continue
            follows[0] = i
        follows = r.follows + record.a[0] + i
        member = first + i
        if r.slices[base + i].state > LEFT_OUT:
            return LEFT
        if i > last:
            if _leave_out(r, r.slices + base, first, last + 1, i):
                return LEFT
            last = i
        else:
            shuffled[0] = True
        _skip_space(r)
        if r.at >= r.end:
            return LEFT
        place, noted = r.size, r.noted
        type = r.code + member.node
        _step_to(r, member)
        if r.at[0] == 110:
            if member.missing > NULL_ or _take_word(r, b"null", 4) or _null_of(type) < 0 or _put(r, _null_of(type) << 1):
                return LEFT
            if member.missing == ABSENT and _note(r, <const uint8_t *>b"null", 4):
                return LEFT
        elif type.kind == OPTIONAL and type.a[3] and r.at[0] == 34:
            if _note_text(r) or _put(r, type.a[2] << 1):
                return LEFT
        elif _write(r, member.node, level + 1):
            return LEFT
        r.stepped -= 1
        slice = r.slices + base + i
        slice.state, slice.start, slice.stop, slice.first_note, slice.last_note = WRITTEN, place, r.size, noted, r.noted
        if _is_last_member(r, &ended):
            return LEFT
        if ended:
            break
    return _leave_out(r, r.slices + base, first, last + 1, record.a[1])


cdef int _append_slice(Run *r, Slice *slice) noexcept nogil:
    cdef Py_ssize_t size = slice.stop - slice.start
    if _reserve(r, size):
        return LEFT
    memcpy(r.out + r.size, r.out + slice.start, size)
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
    cdef const Member *member = r.members + record.a[0]
    cdef Py_ssize_t base = r.depth, begin = r.size
    cdef bint shuffled = record.a[2] >= 0, notes = False
    cdef Py_ssize_t noted = r.noted
    cdef int64_t rest = 0
    cdef int i
    if r.at[0] != 123 or level > r.most_levels or _push_slice(r, record.a[1]):
        return LEFT
    memset(r.slices + base, 0, record.a[1] * sizeof(Slice))
    r.at += 1
    _skip_space(r)
    if r.at < r.end and r.at[0] == 125:
        r.at += 1
        if _leave_out(r, r.slices + base, member, 0, record.a[1]):
            return LEFT
    elif _write_members(r, node, base, level, &shuffled, &rest):
        return LEFT
    for i in range(record.a[1]):
        if r.slices[base + i].state == LEFT_OUT:
            if member.missing == REQUIRED:
                return LEFT
            notes = notes or member.missing == NULL_
        member += 1
    if (notes or r.noted != noted) and _order_notes(r, record, base, noted):
        return LEFT
    if rest > r.most_items or (shuffled and _assemble(r, record, begin, base, rest)):
        return LEFT
    r.depth = base
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


cdef int _write_extras(Run *r) noexcept nogil:
    cdef Py_ssize_t i
    cdef Note *note
    if r.noted and _put_long(r, r.noted):
        return LEFT
    for i in range(r.noted):
        note = r.notes + i
        if _put_long(r, note.stop - note.start) or _put_bytes(r, r.said + note.start, note.stop - note.start):
            return LEFT
        if _put_long(r, note.size) or _put_bytes(r, r.said + note.stop, note.size):
            return LEFT
    return _put(r, 0)


cdef void _begin(Run *r, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    r.at, r.end = start, start + size
    r.noted = r.depth = 0
    r.stepped = 0
    r.named = r.object = 0
    r.run += 1
    if r.run == 0:
        memset(r.names, 0, r.names_room * sizeof(Name))
        r.run = 1


cdef int _write_message(Run *r, int root, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Append the payload of a message."""
    if not cdcavro_is_utf8(start, start + size):
        return LEFT
    _begin(r, start, size)
    r.said_size = 0
    if _write(r, root, 1) or _write_extras(r):
        return LEFT
    _skip_space(r)
    return LEFT if r.at != r.end else OK
