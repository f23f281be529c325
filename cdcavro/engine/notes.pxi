# Text to payload: notes for the extras, each with the pointer to its place.

cdef inline void _step(Run *r, const uint8_t *name, Py_ssize_t size, int64_t index) noexcept nogil:
    """Go down to a member, or to an item if there is no name."""
    r.steps[r.stepped].name = name
    r.steps[r.stepped].size = size
    r.steps[r.stepped].index = index
    r.stepped += 1


cdef inline void _step_to(Run *r, const Member *member) noexcept nogil:
    _step(r, r.texts + member.label + 1, member.size - 3, 0)


cdef int _say(Run *r, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t room
    cdef uint8_t *said
    if r.said_room - r.said_size < size:
        room = 2 * r.said_room + size
        said = <uint8_t *>realloc(r.said, room)
        if said == NULL:
            return LEFT
        r.said = said
        r.said_room = room
    if size:
        memcpy(r.said + r.said_size, start, size)
    r.said_size += size
    return OK


cdef int _say_pointer(Run *r) noexcept nogil:
    """Say the JSON pointer of this place (RFC 6901, section 3)."""
    cdef int i
    cdef Py_ssize_t j, begin
    cdef uint8_t digits[24]
    cdef int size
    cdef int64_t index
    cdef const uint8_t *name
    for i in range(r.stepped):
        if _say(r, <const uint8_t *>b"/", 1):
            return LEFT
        name = r.steps[i].name
        if name == NULL:
            index, size = r.steps[i].index, 0
            while True:
                size += 1
                digits[24 - size] = 48 + index % 10
                index //= 10
                if index == 0:
                    break
            if _say(r, digits + 24 - size, size):
                return LEFT
            continue
        begin = 0
        for j in range(r.steps[i].size):
            if name[j] == 126 or name[j] == 47:
                if _say(r, name + begin, j - begin) or _say(r, <const uint8_t *>(b"~0" if name[j] == 126 else b"~1"), 2):
                    return LEFT
                begin = j + 1
        if _say(r, name + begin, r.steps[i].size - begin):
            return LEFT
    return OK


cdef int _note(Run *r, const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Note a text for this place."""
    cdef Note *notes
    cdef Note *note
    if r.noted >= MOST_NOTES:
        return LEFT
    if r.noted == r.notes_room:
        notes = <Note *>realloc(r.notes, 2 * r.notes_room * sizeof(Note))
        if notes == NULL:
            return LEFT
        r.notes = notes
        r.notes_room *= 2
    note = r.notes + r.noted
    note.start = r.said_size
    if _say_pointer(r):
        return LEFT
    r.pointed += r.said_size - note.start
    if r.pointed > MOST_POINTERS:
        return LEFT
    note.stop, note.size = r.said_size, size
    r.noted += 1
    return _say(r, text, size)


cdef int _note_again(Run *r, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Put notes behind the others; they were noted before."""
    cdef Note *notes
    if r.notes_room - r.noted < last - first:
        notes = <Note *>realloc(r.notes, (2 * r.notes_room + last - first) * sizeof(Note))
        if notes == NULL:
            return LEFT
        r.notes = notes
        r.notes_room = 2 * r.notes_room + last - first
    memcpy(r.notes + r.noted, r.notes + first, (last - first) * sizeof(Note))
    r.noted += last - first
    return OK


cdef int _note_others(Run *r, Py_ssize_t first) noexcept nogil:
    """Note again what was noted for the members of no field, whose slices begin at `first`."""
    cdef Py_ssize_t i
    for i in range(first, r.depth):
        if _note_again(r, r.slices[i].first_note, r.slices[i].last_note):
            return LEFT
    return OK


cdef int _order_notes(Run *r, const Instruction *record, Py_ssize_t base, Py_ssize_t begin) noexcept nogil:
    """Bring the notes of a record into their order: field by field, before them those of members that it does not name.

    Those in a rest map come last, as the map does.
    """
    cdef Py_ssize_t end = r.noted, i
    cdef const Member *member = r.members + record.a[0]
    cdef Slice *slice
    if record.a[2] < 0 and _note_others(r, base + record.a[1]):
        return LEFT
    for i in range(record.a[1]):
        slice = r.slices + base + i
        if slice.state != LEFT_OUT:
            if _note_again(r, slice.first_note, slice.last_note):
                return LEFT
        elif member[i].missing == NULL_:
            _step_to(r, member + i)
            if _note(r, NULL, 0):
                return LEFT
            r.stepped -= 1
    if record.a[2] >= 0 and _note_others(r, base + record.a[1]):
        return LEFT
    memmove(r.notes + begin, r.notes + end, (r.noted - end) * sizeof(Note))
    r.noted = begin + r.noted - end
    return OK
