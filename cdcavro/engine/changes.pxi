# Changes as typed rows: payloads of `change.avsc`, in which the parts of a row stand as they would in a message's payload.

cdef enum:
    LEVEL_OF_VALUES = 3  # in a change, in a row
    MOST_TEXTS = 64  # entries of a map of texts, which are compared with each other
    MOST_ABSENT = 8 << 20  # as in table/writing/rows.py


cdef int _check_column(Run *r, const Instruction *column) noexcept nogil:
    """Pass the value of a column by."""
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef Py_ssize_t size
    cdef int index
    cdef int64_t whole
    cdef double real
    if _read_index(r, &index):
        return LEFT
    if index == column.a[4]:
        return _read_text(r, &start, &size)
    if index == column.a[0]:
        return OK
    if index == column.a[2]:
        return _read_long(r, &whole)
    if index == column.a[3]:
        if r.end - r.at < 8:
            return LEFT
        memcpy(&real, r.at, 8)
        r.at += 8
        return LEFT if real - real != 0 else OK
    if index == column.a[1]:
        return _check_boolean(r)
    if index == column.a[6]:
        return _check_json(r)
    if index != column.a[5] or _read_string(r, &start, &size) or size == 0:
        return LEFT
    end, r.end, r.at = r.end, r.at, start
    index = _scan_number(r, &start)
    start, r.end = r.end, end
    return OK if index and r.at == start else LEFT


cdef int _check_json(Run *r) noexcept nogil:
    """Pass the text of an object or array by if it is compact, as the exact way would spell it again."""
    cdef const uint8_t *start
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef Py_ssize_t size
    if _read_text(r, &start, &size) or size == 0 or (start[0] != 123 and start[0] != 91):
        return LEFT
    # What is put out is nothing but this text.
    at, end = r.at, r.end
    r.at, r.end, r.size = start, at, 0
    if _copy_json(r, LEVEL_OF_VALUES) or r.at != r.end or r.size != size or memcmp(r.out, start, size) != 0:
        return LEFT
    r.end = end
    return OK


cdef inline int _check_boolean(Run *r) noexcept nogil:
    if r.at >= r.end or r.at[0] > 1:
        return LEFT
    r.at += 1
    return OK


cdef int _check_entries(Run *r, const Instruction *map) noexcept nogil:
    """Pass a map by. Names of columns are compared with those of their table, and told apart there."""
    cdef const uint8_t *names[MOST_TEXTS]
    cdef Py_ssize_t sizes[MOST_TEXTS]
    cdef const uint8_t *start
    cdef Py_ssize_t size
    cdef int64_t count, i, j
    cdef bint is_image = r.code[map.a[0]].kind == COLUMN
    if _read_count(r, &count) or not (is_image or count <= MOST_TEXTS):
        return LEFT
    for i in range(count):
        if is_image:
            if _skip_text(r) or _check_column(r, r.code + map.a[0]):
                return LEFT
            continue
        if _read_text(r, &start, &size) or _check(r, map.a[0]):
            return LEFT
        for j in range(i):
            if sizes[j] == size and memcmp(names[j], start, size) == 0:
                return LEFT
        names[i], sizes[i] = start, size
    return _read_end(r) if count else OK


cdef int _check_items(Run *r, const Instruction *array) noexcept nogil:
    """Pass an array by, none of whose items is null."""
    cdef int64_t count, i
    if _read_count(r, &count):
        return LEFT
    for i in range(count):
        if r.code[array.a[0]].kind == OPTIONAL and (r.at >= r.end or r.at[0] != r.code[array.a[0]].a[1] << 1):
            return LEFT
        if _check(r, array.a[0]):
            return LEFT
    return _read_end(r) if count else OK


cdef int _check(Run *r, int node) noexcept nogil:
    """Pass one value by if it is one that the exact way reads."""
    cdef const Instruction *type = r.code + node
    cdef const uint8_t *start
    cdef Py_ssize_t size
    cdef int64_t value
    cdef int index, i
    if type.kind == OPTIONAL:
        if _read_index(r, &index):
            return LEFT
        if index == type.a[2]:
            return OK
        if index != type.a[1]:
            return LEFT
        type = r.code + type.a[0]
    if type.kind == STRING:
        return _read_text(r, &start, &size)
    if type.kind == LONG:
        return _read_long(r, &value)
    if type.kind == INT:
        return _read_long(r, &value) or not -(<int64_t>1 << 31) <= value < <int64_t>1 << 31
    if type.kind == MAP:
        return _check_entries(r, type)
    if type.kind == ARRAY:
        return _check_items(r, type)
    if type.kind != RECORD:
        return LEFT
    for i in range(type.a[0], type.a[0] + type.a[1]):
        if r.members[i].missing == EXTRAS or _check(r, r.members[i].node):
            return LEFT
    return OK


cdef int _gather_change(Typing *t, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Note the parts of a change, and add everything else to the pattern.

    What belongs to the pattern is not checked: the change that it was learned from, which the exact way read, has the
    same bytes.
    """
    cdef Run *r = t.run
    cdef const Instruction *record = r.code + r.root
    cdef const Member *member
    cdef const uint8_t *at
    cdef int i
    # All arrays and maps together have at most one item to a byte.
    _begin(r, start, size)
    r.items_left = size
    for i in range(record.a[0], record.a[0] + record.a[1]):
        member = r.members + i
        at = r.at
        if member.missing == EXTRAS:
            if _read_end(r):
                return LEFT
        elif member.part == FIXED:
            if _skip(r, member.node) or _keep(t, at, r.at):
                return LEFT
        elif _gather_of_change(t, member):
            return LEFT
    return OK if r.at == r.end else LEFT


cdef int _gather_of_change(Typing *t, const Member *member) noexcept nogil:
    """Pass a member by that is a part of a row, or unused; whether it has a value belongs to the pattern."""
    cdef Run *r = t.run
    cdef const Instruction *type = r.code + member.node
    cdef Slot *slot = t.slots + member.part
    cdef const uint8_t *start
    cdef int index
    if type.kind != OPTIONAL or r.at >= r.end or _put(t.fixed, r.at[0]) or _read_index(r, &index):
        return LEFT
    if index == type.a[2]:
        return OK
    start = r.at
    if index != type.a[1] or _check(r, type.a[0]):
        return LEFT
    if member.part != UNUSED:
        slot.start, slot.end, slot.member, slot.node = start, r.at, member, type.a[0]
    return OK


cdef inline int _whole_at(Typing *t, int part, int64_t *value, bint *is_given) noexcept nogil:
    cdef const Slot *slot = t.slots + part
    is_given[0] = slot.start != NULL
    if not is_given[0]:
        return OK
    t.run.at, t.run.end = slot.start, slot.end
    return _read_long(t.run, value)


cdef int _take_change(Typing *t) noexcept nogil:
    """Take the times, the numbers and the place of a change, and which row of its message it is."""
    cdef Run *r = t.run
    cdef const Slot *position = t.slots + POSITION
    cdef const Slot *place = t.slots + PLACE
    cdef bint is_given
    cdef int64_t count, i
    t.number, t.count, t.number_count = 0, 1, -1
    if _whole_at(t, EVENT, &t.event, &t.has_event) or _whole_at(t, SYSTEM, &t.system, &t.has_system):
        return LEFT
    if _whole_at(t, ROW_NUMBER, &t.number, &is_given) or _whole_at(t, ROW_COUNT, &t.count, &is_given):
        return LEFT
    if position.start != NULL:
        r.at, r.end = position.start, position.end
        if _read_long(r, &count) or not 0 <= count <= MOST_NUMBERS:
            return LEFT
        for i in range(count):
            if _read_long(r, t.numbers + i):
                return LEFT
        t.number_count = <int>count
    # A place is encoded as it is in `source`.
    t.place = <const uint8_t *>NO_PLACE if place.start == NULL else place.start
    t.place_size = 5 if place.start == NULL else place.end - place.start
    return OK


cdef inline int _take_facts(Typing *t, int rule) noexcept nogil:
    """Take the times and numbers of a message or a change."""
    if t.is_change:
        return _take_change(t)
    return _take_times(t) or _take_numbers(t, rule)


cdef int _take_whole_image(Typing *t, Pattern *p, const Slot *image, Token *tokens) noexcept nogil:
    """Find the columns of a row; stop at a name that it has twice."""
    cdef Run *r = t.run
    cdef int64_t count
    cdef int i
    if image.start == NULL or _take_image(t, p, image.start, image.end, r.code[image.node].a[0], tokens):
        return LEFT
    r.at, r.end = image.start, image.end
    if _read_long(r, &count):
        return LEFT
    for i in range(p.count):
        count -= tokens[i].row == t.row
    return LEFT if count else OK


cdef bint _lacks_too_much(Typing *t, const Pattern *p, const Token *tokens) noexcept nogil:
    """Return whether the names of a row's absent columns are out of proportion, once for each row of the message."""
    cdef int64_t size = 0
    cdef int i
    if t.count <= 1:
        return False
    for i in range(p.count):
        if p.cells[i].op != GONE and tokens[i].row != t.row:
            size += p.cells[i].size + 1
    return size > MOST_ABSENT // t.count


cdef int _type_change(Typing *t, Pattern *p, int32_t message) noexcept nogil:
    """Append the row of a change whose parts were gathered; stop at one that has no order."""
    cdef bint has_before = p.before != FIXED, has_after = p.after != FIXED, is_place
    cdef const Slot *image = t.slots + (p.before if has_before else p.after)
    if not (has_before or has_after) or _take_change(t) or _reserve_tokens(t, p.count):
        return LEFT
    if t.order.is_asked:
        if _begin_order(t, p):
            return LEFT
        t.order.row = t.number
    elif t.number_count < 0 and (_find_place(t, p, &is_place) or not is_place):
        return LEFT
    t.row += 1
    if has_before and (_take_whole_image(t, p, t.slots + p.before, t.before) or _lacks_too_much(t, p, t.before)):
        return LEFT
    if has_after and (_take_whole_image(t, p, t.slots + p.after, t.after) or _lacks_too_much(t, p, t.after)):
        return LEFT
    if _put_row(t, p, t.run.code[image.node].a[0], t.number, has_before, has_after):
        return LEFT
    return _note_row(t, p, message)
