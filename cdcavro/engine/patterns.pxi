# The pattern of a message: its parts noted where they stand in its payload, and everything else put together.

cdef inline int _take_end(Run *r) noexcept nogil:
    """Pass the end of an array or a map by, which has one block."""
    if r.at >= r.end or r.at[0]:
        return LEFT
    r.at += 1
    return OK


cdef int _keep(Typing *t, const uint8_t *start, const uint8_t *end) noexcept nogil:
    """Add bytes to those that belong to the pattern."""
    return _put_bytes(t.fixed, start, end - start)


cdef int _gather(Typing *t, int node, int part) noexcept nogil:
    """Pass a record by: note where the parts of rows stand, and add everything else to the pattern."""
    cdef Run *r = t.run
    cdef const Instruction *record = r.code + node
    cdef const Member *member
    cdef const uint8_t *start
    cdef int i, own
    for i in range(record.a[0], record.a[0] + record.a[1]):
        member = r.members + i
        start = r.at
        if member.missing == EXTRAS:
            if _gather_extras(t):
                return LEFT
            continue
        own = member.part
        if own == FIXED and part != FIXED and _is_image(r, member.node):
            own = part
        if own == FIXED:
            if _skip(r, member.node) or _keep(t, start, r.at):
                return LEFT
        elif own == UNUSED:
            # Only whether it is there belongs to the pattern.
            if _skip(r, member.node) or _put(t.fixed, r.code[member.node].kind != OPTIONAL or start[0]):
                return LEFT
            t.loose += r.at - start
        elif _gather_part(t, member, own):
            return LEFT
    return OK


cdef inline bint _is_image(Run *r, int node) noexcept nogil:
    """Return whether a type is a map of column values."""
    if r.code[node].kind == OPTIONAL:
        node = r.code[node].a[0]
    return r.code[node].kind == MAP and r.code[r.code[node].a[0]].kind == COLUMN


cdef int _gather_extras(Typing *t) noexcept nogil:
    cdef Run *r = t.run
    cdef const uint8_t *start = r.at
    cdef int64_t count, i
    if _read_long(r, &count) or count < 0 or count > r.end - r.at:
        return LEFT
    for i in range(2 * count):
        if _skip_text(r):
            return LEFT
    if count and _take_end(r):
        return LEFT
    return _keep(t, start, r.at)


cdef int _gather_part(Typing *t, const Member *member, int part) noexcept nogil:
    """Pass a member by that is a part of a row, or has parts within; whether it has a value belongs to the pattern."""
    cdef Run *r = t.run
    cdef int node = member.node, index
    cdef Slot *slot
    if r.code[node].kind == OPTIONAL or r.code[node].kind == VARIANT:
        if r.at >= r.end or _put(t.fixed, r.at[0]):
            return LEFT
        if r.code[node].kind == OPTIONAL:
            if _read_index(r, &index):
                return LEFT
            if index == r.code[node].a[2]:
                return OK
            node = r.code[node].a[0]
        elif r.at[0] == r.code[node].a[0] << 1:
            r.at += 1
            return OK
    if r.code[node].kind == RECORD:
        return _gather(t, node, FIXED if part == WITHIN else part)
    slot = t.slots + part
    if slot.start != NULL or part == WITHIN:
        return LEFT
    slot.start = r.at
    if part == KEY:
        if _gather_key(t, r.code + node):
            return LEFT
    elif _skip(r, node):
        return LEFT
    slot.end = r.at
    slot.member = member
    slot.node = node
    if part == TRANSACTION:
        t.loose += slot.end - slot.start
        return _put(t.fixed, slot.end - slot.start == 1)  # an empty one may be none
    if part == NUMBER_0 and r.code[node].kind == STRING:
        # DataHub's full loads have the number -1.
        index = slot.end - slot.start == 3 and slot.start[1] == 45 and slot.start[2] == 49
        return _put(t.fixed, <uint8_t>index)
    return OK


cdef int _gather_key(Typing *t, const Instruction *map) noexcept nogil:
    """Note the values of a key; its names belong to the pattern."""
    cdef Run *r = t.run
    cdef const uint8_t *start
    cdef int64_t count, i
    if map.kind != MAP or _read_long(r, &count) or not 0 <= count <= MOST_KEYS:
        return LEFT
    t.key_count = <int>count
    for i in range(count):
        start = r.at
        if _skip_text(r) or _keep(t, start, r.at):
            return LEFT
        t.key_names[i] = start
        t.key_sizes[i] = r.at - start
        t.key_values[i].start = r.at
        if _skip(r, map.a[0]):
            return LEFT
        t.key_values[i].end = r.at
    if count and _take_end(r):
        return LEFT
    return OK


cdef int _gathered(Typing *t, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Encode a message, and note its parts and its pattern; a change is a payload already."""
    cdef Run *r = t.run
    r.size = 0
    memset(t.slots, 0, PARTS * sizeof(Slot))
    t.fixed.size = 0
    t.key_count = 0
    t.loose = 0
    if r.root < 0:
        return LEFT
    if t.is_change:
        return _gather_change(t, start, size)
    if _write_message(r, r.root, start, size):
        return LEFT
    # The engine's own payload is no bomb.
    r.items_left = LARGEST
    r.at = r.out
    r.end = r.out + r.size
    return LEFT if _gather(t, r.root, FIXED) or r.at != r.end else OK
