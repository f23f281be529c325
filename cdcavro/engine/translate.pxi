# Payload to payload: what a writer's schema wrote is checked, and becomes what the reader's would have written.

cdef inline int _give(Transit *t, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Write bytes, up to the most that a translation may have."""
    if size > t.plan.most_bytes - (t.run.size - t.first):
        return LEFT
    return _put_bytes(&t.run, start, size)


cdef inline int _settle(Transit *t) noexcept nogil:
    """Write what was read and is the reader's as it is."""
    cdef Py_ssize_t size = t.run.at - t.kept
    if size == 0:
        return OK
    if _give(t, t.kept, size):
        return LEFT
    t.kept = t.run.at
    return OK


cdef inline int _settle_to(Transit *t, const uint8_t *place) noexcept nogil:
    """Write what was read up to a place, and leave out what stands between it and what is read next."""
    cdef Py_ssize_t size = place - t.kept
    if size and _give(t, t.kept, size):
        return LEFT
    t.kept = t.run.at
    return OK


cdef inline int _give_long(Transit *t, int64_t value) noexcept nogil:
    cdef uint8_t text[VARINT]
    return _give(t, text, cdcavro_varint(text, (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)))


cdef inline int _pass_long(Transit *t, int64_t *value) noexcept nogil:
    """Read an integer in its canonical form, which often is one byte."""
    cdef Run *r = &t.run
    if r.at < r.end and r.at[0] < 0x80:
        value[0] = <int64_t>(r.at[0] >> 1) ^ -<int64_t>(r.at[0] & 1)
        r.at += 1
        return OK
    return _read_long(r, value)


cdef inline int _pass_size(Transit *t, Py_ssize_t *size) noexcept nogil:
    """Read a length that the bytes behind it have, and pass them by."""
    cdef int64_t length
    if _pass_long(t, &length) or length < 0 or length > t.run.end - t.run.at:
        return LEFT
    size[0] = <Py_ssize_t>length
    t.run.at += length
    return OK


cdef inline int _pass_limited(Transit *t, const Turn *turn, int64_t *value) noexcept nogil:
    cdef const int64_t *limits = t.plan.limits + 2 * <Py_ssize_t>turn.a
    return _pass_long(t, value) or not limits[0] <= value[0] <= limits[1]


cdef inline int _pass_text(Transit *t) noexcept nogil:
    cdef Py_ssize_t size
    if _pass_size(t, &size):
        return LEFT
    return OK if cdcavro_is_utf8(t.run.at - size, t.run.at) else LEFT


cdef int _pass_decimal(Transit *t, const Turn *turn, Py_ssize_t *passed) noexcept nogil:
    """Pass the bytes of a decimal by, whose unscaled value must be within the bounds in the texts of the program."""
    cdef Py_ssize_t size = turn.c
    cdef const uint8_t *at
    cdef const uint8_t *bound = t.plan.texts + turn.a
    if size >= 0:
        if size > t.run.end - t.run.at:
            return LEFT
        t.run.at += size
    elif _pass_size(t, &size):
        return LEFT
    if size == 0:
        return LEFT
    passed[0] = size
    at = t.run.at - size
    # Without the bytes that only repeat the sign, the longer one is the greater one.
    while size > 1 and ((at[0] == 0 and at[1] < 0x80) or (at[0] == 0xFF and at[1] >= 0x80)):
        at += 1
        size -= 1
    if size != turn.b:
        return LEFT if size > turn.b else OK
    if at[0] < 0x80:
        return LEFT if memcmp(at, bound, size) > 0 else OK
    return LEFT if memcmp(at, bound + size, size) < 0 else OK


cdef int _turn_number(Transit *t, const Turn *turn) noexcept nogil:
    """Write an integer as a float or a double, or a float as a double."""
    cdef const uint8_t *start = t.run.at
    cdef int64_t value
    cdef float single
    cdef double number
    if turn.kind == ON_WIDEN:
        if t.run.end - start < 4:
            return LEFT
        memcpy(&single, start, 4)
        # Not every machine widens a NaN that signals as Python does.
        if single != single and not start[2] & 0x40:
            return LEFT
        t.run.at += 4
        number = single
    elif _pass_limited(t, turn, &value):
        return LEFT
    elif turn.kind == ON_TO_FLOAT:
        single = <float>value
        return _settle_to(t, start) or _give(t, <const uint8_t *>&single, 4)
    else:
        number = <double>value
    return _settle_to(t, start) or _give(t, <const uint8_t *>&number, 8)


cdef int _turn_enum(Transit *t, const Turn *turn) noexcept nogil:
    cdef const uint8_t *start = t.run.at
    cdef int64_t value
    cdef int32_t into
    if _pass_long(t, &value) or not 0 <= value < turn.b:
        return LEFT
    into = t.plan.indexes[turn.a + value]
    if into == value:
        return OK
    return LEFT if into < 0 else _settle_to(t, start) or _give_long(t, into)


cdef int _turn_union(Transit *t, const Turn *turn, int level) noexcept nogil:
    cdef const uint8_t *start = t.run.at
    cdef const int32_t *branch
    cdef int64_t value
    if _pass_long(t, &value) or not 0 <= value < turn.b:
        return LEFT
    branch = t.plan.indexes + 2 * (turn.a + value)
    if branch[1] != value:
        if _settle_to(t, start) or (branch[1] >= 0 and _give_long(t, branch[1])):
            return LEFT
    return _turn(t, branch[0], level)


cdef int _pass_block(
    Transit *t, bint is_weightless, bint rewrites, int64_t *read, int64_t *count, const uint8_t **stop
) noexcept nogil:
    """Read how many items come next, of which `read` have been; a count that says the block's size becomes a plain one.

    `stop` becomes the end of the block by its size, or NULL.
    """
    cdef const uint8_t *start = t.run.at
    cdef int64_t size
    cdef int64_t length = t.run.end - t.start
    cdef const Plan *plan = t.plan
    stop[0] = NULL
    if _pass_long(t, count):
        return LEFT
    if count[0] < 0:
        if _pass_long(t, &size) or not 0 <= size <= t.run.end - t.run.at:
            return LEFT
        stop[0] = t.run.at + size
        if count[0] < -length and (not is_weightless or count[0] < -plan.most_weightless):
            return LEFT
        count[0] = -count[0]
        if rewrites and (_settle_to(t, start) or _give_long(t, count[0])):
            return LEFT
    if is_weightless:
        if count[0] > plan.most_weightless - t.weightless:
            return LEFT
        t.weightless += count[0]
    else:
        if count[0] > t.run.end - t.run.at or count[0] > length - t.items:
            return LEFT
        t.items += count[0]
    if count[0] > plan.most_items - read[0]:
        return LEFT
    read[0] += count[0]
    return OK


cdef int _turn_items(Transit *t, const Turn *turn, int level) noexcept nogil:
    cdef int64_t read = 0, count, i
    cdef const uint8_t *stop
    cdef bint is_nothing = t.plan.code[turn.a].kind == ON_NOTHING
    if level > t.plan.most_levels:
        return LEFT
    while True:
        if _pass_block(t, turn.b, turn.c, &read, &count, &stop):
            return LEFT
        if count == 0:
            return OK
        if not is_nothing:
            for i in range(count):
                if _turn(t, turn.a, level):
                    return LEFT
        if stop != NULL and t.run.at != stop:
            return LEFT


cdef int _turn_entries(Transit *t, const Turn *turn, int level) noexcept nogil:
    cdef int64_t read = 0, count, i
    cdef Py_ssize_t size
    cdef uint32_t own
    cdef const uint8_t *stop
    if level > t.plan.most_levels:
        return LEFT
    t.run.object += 1
    own = t.run.object
    while True:
        if _pass_block(t, False, turn.b, &read, &count, &stop):
            return LEFT
        if count == 0:
            return OK
        for i in range(count):
            if _pass_size(t, &size) or not cdcavro_is_utf8(t.run.at - size, t.run.at):
                return LEFT
            if _add_name(&t.run, own, t.run.at - size, size) or _turn(t, turn.a, level):
                return LEFT
        if stop != NULL and t.run.at != stop:
            return LEFT


cdef int _turn_fields(Transit *t, const Turn *turn, int level) noexcept nogil:
    """Turn a record whose fields come in the order of the reader's."""
    cdef const Action *action = t.plan.actions + turn.a
    cdef const Action *end = action + turn.b
    if level > t.plan.most_levels:
        return LEFT
    while action < end:
        if action.kind == ON_FIELD:
            if _turn(t, action.first, level):
                return LEFT
        elif action.kind == ON_DEFAULT:
            if _settle(t) or _give(t, t.plan.texts + action.first, action.size):
                return LEFT
        elif _settle(t) or _turn(t, action.first, level):
            return LEFT
        else:
            t.kept = t.run.at
        action += 1
    return OK


cdef int _turn(Transit *t, int node, int level) noexcept nogil:
    """Read and check one datum by the instruction of its type; what is the reader's as it is stays to be written."""
    cdef const Turn *turn = t.plan.code + node
    cdef int64_t value
    cdef Py_ssize_t size
    if turn.kind == ON_STRING:
        return _pass_text(t)
    if turn.kind == ON_INTEGER:
        return _pass_limited(t, turn, &value)
    if turn.kind == ON_UNION:
        return _turn_union(t, turn, level)
    if turn.kind == ON_NOTHING:
        return OK
    if turn.kind == ON_TAKE:
        if turn.a > t.run.end - t.run.at:
            return LEFT
        t.run.at += turn.a
        return OK
    if turn.kind == ON_BOOLEAN:
        if t.run.at >= t.run.end or t.run.at[0] > 1:
            return LEFT
        t.run.at += 1
        return OK
    if turn.kind == ON_BYTES:
        return _pass_size(t, &size)
    if turn.kind == ON_RECORD:
        return _turn_fields(t, turn, level + 1)
    if turn.kind == ON_ENUM:
        return _turn_enum(t, turn)
    if turn.kind == ON_INTO:
        return _settle(t) or _give_long(t, turn.a) or _turn(t, turn.b, level)
    if turn.kind == ON_TO_FLOAT or turn.kind == ON_TO_DOUBLE or turn.kind == ON_WIDEN:
        return _turn_number(t, turn)
    if turn.kind == ON_ARRAY:
        return _turn_items(t, turn, level + 1)
    if turn.kind == ON_MAP:
        return _turn_entries(t, turn, level + 1)
    if turn.kind == ON_DECIMAL:
        return _pass_decimal(t, turn, &size)
    if turn.kind == ON_REORDER:
        return _turn_reordered(t, turn, level + 1)
    return LEFT
