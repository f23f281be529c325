# What departs from a format's convention: noted in the extras on the way to a payload, each text with the pointer to
# its place, and put in its place again on the way back.


cdef enum:
    MOST_NOTES = 100000
    MOST_PATCHES = 100000
    MOST_POINTERS = 2 << 20  # bytes of all pointers of a message; the exact way takes so many characters
    INSIDE = 1 << 30  # a mark of a member: something in it has a patch
    TAIL = 2048

cdef struct Note:  # where its pointer and its text stand in `said`; the text begins where the pointer stops
    Py_ssize_t start
    Py_ssize_t stop
    Py_ssize_t size

cdef struct Patch:  # a text in place of a member, or of one that the schema does not name, whose label is said, too
    int32_t member
    int32_t node
    uint32_t applied  # in which run it replaced a value
    # Of members of an array's items: which item, and the numbers of the next patch of the same member, of that whose
    # turn it is, and of the last; the first patch of a member knows these two.
    int32_t next
    int32_t turn
    int32_t last
    int64_t index
    Py_ssize_t start
    Py_ssize_t stop
    Py_ssize_t end

cdef struct Place:  # to which a pointer leads
    int node  # the record
    int member  # -1 for one that it does not name
    int level
    int64_t index  # of an array's item, -1 without one
    const uint8_t *name
    Py_ssize_t size


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
                if _say(r, name + begin, j - begin):
                    return LEFT
                if _say(r, <const uint8_t *>(b"~0" if name[j] == 126 else b"~1"), 2):
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
            if slice.first_note != slice.last_note and _note_again(r, slice.first_note, slice.last_note):
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


# Payload to text: what the extras put in the place of members.

cdef int _append_patch(Run *r, Patch *patch, bint *first) noexcept nogil:
    """Put out a member that the record does not name, or that has no value in it; take note of one left out."""
    cdef const Member *member = r.members + patch.member
    if patch.member >= 0:
        if patch.stop == patch.end:
            r.applied += 1
            return OK
        if patch.applied == r.run:
            return OK
    if not first[0] and _put(r, 44):
        return LEFT
    first[0] = False
    if patch.member >= 0:
        if _put_bytes(r, r.texts + member.label, member.size):
            return LEFT
    elif _put_bytes(r, r.said + patch.start, patch.stop - patch.start):
        return LEFT
    r.applied += 1
    return _put_bytes(r, r.said + patch.stop, patch.end - patch.stop)


cdef int _append_patches(Run *r, int node, bint *first) noexcept nogil:
    cdef int i
    for i in range(r.patch_count):
        if r.patches[i].node == node and _append_patch(r, r.patches + i, first):
            return LEFT
    return OK


cdef int _pass_extras(Run *r) noexcept nogil:
    """Pass the extras by if they are those that this payload was read with; else learn them and begin again."""
    if r.at == r.learned:
        r.at = r.learned_end
        return OK
    if r.tail_size and r.end - r.at >= r.tail_size and memcmp(r.at, r.tail, r.tail_size) == 0:
        r.at += r.tail_size
        return OK
    r.again = _learn_extras(r) == OK
    if not r.again:
        _forget_extras(r)
    return LEFT


cdef void _forget_extras(Run *r) noexcept nogil:
    memset(r.patched, 0, (r.count + r.nodes) * sizeof(int32_t))
    r.patch_count = 0
    r.said_size = r.around_size = 0
    r.learned = NULL
    r.tail[0] = 0
    r.tail_size = 1


cdef int _learn_extras(Run *r) noexcept nogil:
    cdef const uint8_t *begin = r.at
    cdef const uint8_t *pointer
    cdef const uint8_t *text
    cdef Py_ssize_t length, size
    cdef int64_t count, i
    _forget_extras(r)
    r.other = r.follows + r.count + r.root
    if _read_long(r, &count) or not 0 <= count <= MOST_PATCHES:
        return LEFT
    for i in range(count):
        if _read_text(r, &pointer, &length) or _read_text(r, &text, &size):
            return LEFT
        if length == 5 and memcmp(pointer, b"kafka", 5) == 0:
            if _say_around(r, text, size):
                return LEFT
        elif _add_patch(r, pointer, length, text, size):
            return LEFT
    if count and _read_end(r):
        return LEFT
    r.learned, r.learned_end = begin, r.at
    r.tail_size = r.at - begin
    r.vary = count > 0
    if r.tail_size > TAIL:
        r.tail_size = 0
    else:
        memcpy(r.tail, begin, r.tail_size)
    return OK


cdef int _new_patch(Run *r, Patch **patch) noexcept nogil:
    cdef Patch *patches
    if r.patch_count == r.patches_room:
        patches = <Patch *>realloc(r.patches, (2 * r.patches_room + 16) * sizeof(Patch))
        if patches == NULL:
            return LEFT
        r.patches = patches
        r.patches_room = 2 * r.patches_room + 16
    patch[0] = r.patches + r.patch_count
    r.patch_count += 1
    return OK


cdef inline int _take_token(const uint8_t **pointer, const uint8_t *end, const uint8_t **token) noexcept nogil:
    """Pass a slash and the token behind it by; stop at an escape."""
    if pointer[0] == end or pointer[0][0] != 47:
        return LEFT
    pointer[0] += 1
    token[0] = pointer[0]
    while pointer[0] < end and pointer[0][0] != 47:
        if pointer[0][0] == 126:
            return LEFT
        pointer[0] += 1
    return OK


cdef int _as_index(const uint8_t *at, const uint8_t *end, int64_t *index) noexcept nogil:
    """Read the index of an item."""
    if at == end or end - at > 9 or cdcavro_pass_digits(at, end) != end or (at[0] == 48 and end - at > 1):
        return LEFT
    index[0] = <int64_t>cdcavro_whole(at, end)
    return OK


cdef int _walk(Run *r, Place *place, const uint8_t *pointer, const uint8_t *end) noexcept nogil:
    """Go down a pointer to the record that its last name is of, by the items of one array at the most."""
    cdef const Instruction *type
    place.node, place.level, place.index = r.root, 1, -1
    while True:
        type = r.code + place.node
        if type.kind == OPTIONAL:
            place.node = type.a[0]
            type = r.code + place.node
        if _take_token(&pointer, end, &place.name):
            return LEFT
        place.size = pointer - place.name
        if type.kind == ARRAY:
            if place.index >= 0 or pointer == end or _as_index(place.name, pointer, &place.index):
                return LEFT
            place.node = type.a[0]
        elif type.kind == RECORD:
            place.member = _find_member(r, type, place.name, place.size)
            if place.member >= 0:
                place.member += type.a[0]
            if pointer == end:
                return OK
            if place.member < 0 or r.patched[place.member] & ~INSIDE:
                return LEFT
            r.patched[place.member] = INSIDE
            place.node = r.members[place.member].node
        else:
            return LEFT
        place.level += 1


cdef int _add_item_patch(Run *r, Patch *patch, int i) noexcept nogil:
    """Add a patch for a member of an array's item behind those of the same member of other items."""
    cdef Patch *last
    patch.next, patch.last = 0, r.patch_count
    if r.patched[i] == 0:
        r.patched[i] = r.patch_count
        return OK
    if r.patched[i] & INSIDE:
        return LEFT
    last = r.patches + r.patches[r.patched[i] - 1].last - 1
    if last.index >= patch.index:
        return LEFT
    last.next = r.patches[r.patched[i] - 1].last = r.patch_count
    return OK


cdef int _add_patch(
    Run *r, const uint8_t *pointer, Py_ssize_t length, const uint8_t *text, Py_ssize_t size
) noexcept nogil:
    """Add a patch for the member at a pointer, which must lie apart from the others."""
    cdef Patch *patch
    cdef Place place
    cdef int i
    if _walk(r, &place, pointer, pointer + length) or _new_patch(r, &patch):
        return LEFT
    i = place.member
    patch.node, patch.member, patch.applied, patch.index = place.node, i, 0, place.index
    patch.start = patch.stop = r.said_size
    if place.index >= 0:
        if i < 0 or size == 0 or _add_item_patch(r, patch, i):
            return LEFT
        return _say_value(r, patch, text, size, place.level + 1)
    r.patched[r.count + place.node] += 1
    if i >= 0:
        if r.patched[i]:
            return LEFT
        if r.members[i].missing > NULL_ and (size == 0 or (size == 4 and memcmp(text, b"null", 4) == 0)):
            return LEFT
        r.patched[i] = r.patch_count
    elif r.code[place.node].a[2] >= 0 or size == 0 or _say_label(r, &place, patch):
        return LEFT
    return _say_value(r, patch, text, size, place.level + 1)


cdef int _say_label(Run *r, const Place *at, Patch *patch) noexcept nogil:
    """Say the name of a member that a record does not name, which it may have only once."""
    cdef Py_ssize_t place = r.size, size = at.size
    cdef int node = at.node
    cdef const uint8_t *start = at.name
    cdef const uint8_t *end = start + size
    cdef uint32_t object = <uint32_t>-1 - node
    cdef KnownName *known = _guess(r, node, r.other[0])
    cdef int number
    if known != NULL and known.size == size and memcmp(known.label + known.label_size + 1, start, size) == 0:
        if _see(r, known, object):
            return LEFT
    else:
        if _meet(r, node, object, start, size, &number):
            return LEFT
        known = NULL
        if number:
            r.other[0] = number
            known = _known_at(r.known, number)
    if known != NULL:
        r.other = &known.next
        if _say(r, known.label, known.label_size):
            return LEFT
    else:
        if _put_quoted(r, start, end, end) or _put(r, 58) or _say(r, r.out + place, r.size - place):
            return LEFT
        r.size = place
    patch.stop = r.said_size
    return OK


cdef int _say_value(Run *r, Patch *patch, const uint8_t *text, Py_ssize_t size, int level) noexcept nogil:
    """Say the text of a patch in its compact form; in place of a member that the schema names, it is a scalar."""
    cdef const uint8_t *at = r.at
    cdef const uint8_t *end = r.end
    cdef Py_ssize_t place = r.size
    cdef bint plain = True
    if size:
        r.at, r.end = text, text + size
        if patch.member >= 0:
            plain = size == 4 and memcmp(text, b"null", 4) == 0
            if not plain and (text[0] == 110 or text[0] <= 32 or text[0] == 91 or text[0] == 123):
                return LEFT
            if not plain and not _is_scalar(r, r.members[patch.member].node, text[0] == 34):
                return LEFT
        if _copy_json(r, level):
            return LEFT
        _skip_space(r)
        if r.at != r.end or _say(r, r.out + place, r.size - place):
            return LEFT
        r.size = place
        r.at, r.end = at, end
    patch.end = r.said_size
    return OK


cdef bint _is_scalar(Run *r, int node, bint is_text) noexcept nogil:
    """Return whether a member may be a scalar, which is a string if `is_text`."""
    cdef int kind = r.code[node].kind
    if kind == OPTIONAL:
        if is_text and r.code[node].a[3]:
            return True
        kind = r.code[r.code[node].a[0]].kind
    return kind != MAP and kind != ARRAY and kind != RECORD
