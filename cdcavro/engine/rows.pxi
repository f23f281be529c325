# Messages as typed rows: of each message its pattern, of each pattern the table, and of each row its key and envelope.

cdef int _type_message(Typing *t, Pattern *p, int32_t message) noexcept nogil:
    """Append the rows of a message whose parts were gathered."""
    if t.is_change:
        return _type_change(t, p, message)
    if _take_times(t) or _take_numbers(t, p.position) or _reserve_tokens(t, p.count):
        return LEFT
    if t.order.is_asked and _begin_order(t, p):
        return LEFT
    if t.slots[ROWS].start != NULL:
        return _type_rows(t, p, message)
    return _type_row(t, p, message)


cdef int _type_row(Typing *t, Pattern *p, int32_t message) noexcept nogil:
    """Append the only row of a message."""
    cdef const Slot *before = t.slots + p.before
    cdef const Slot *after = t.slots + p.after
    cdef bint has_before = p.before != FIXED, has_after = p.after != FIXED
    cdef int values
    if (has_before and before.start == NULL) or (has_after and after.start == NULL) or not (has_before or has_after):
        return LEFT
    values = t.run.code[(before if has_before else after).node].a[0]
    t.row += 1
    if has_before and _take_image(t, p, before.start, before.end, values, t.before):
        return LEFT
    if has_after:
        if has_before and p.after == ROW:
            memcpy(t.after, t.before, p.count * sizeof(Token))
        if _take_image(t, p, after.start, after.end, values, t.after):
            return LEFT
    if t.key_count and _keys_agree(t, p, t.after if has_after else t.before):
        return LEFT
    return _put_row(t, p, values, 0, has_before, has_after) or _note_row(t, p, message)


cdef int _type_rows(Typing *t, Pattern *p, int32_t message) noexcept nogil:
    """Append all rows of a message; beside each of an update may stand the values that its changed columns had."""
    cdef Run *r = t.run
    cdef const Slot *rows = t.slots + ROWS
    cdef const Slot *olds = t.slots + OLD
    cdef const Instruction *item = r.code + r.code[rows.node].a[0]
    cdef int values = r.code[item.a[0]].a[0]
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef const uint8_t *old = NULL
    cdef int64_t count, left = 0, i
    cdef bint has_old
    if olds.start != NULL:
        r.at, r.end = olds.start, olds.end
        if _read_long(r, &left):
            return LEFT
        old = r.at
    r.at, r.end = rows.start, rows.end
    if _read_long(r, &count) or count < 1 or count > MOST_ROWS or left > count:
        return LEFT
    if count > 1 and count > (4 << 20) // (p.weight + t.loose + 1):
        return LEFT
    at = r.at
    for i in range(count):
        t.row += 1
        r.at, r.end = at, rows.end
        if r.at >= r.end or r.at[0] != item.a[1] << 1 or _skip(r, r.code[rows.node].a[0]):
            return LEFT
        end = r.at
        if _take_image(t, p, at + 1, end, values, t.before if p.before == ROWS else t.after):
            return LEFT
        at = end
        has_old = False
        if i < left and _take_old(t, p, &old, values, &has_old):
            return LEFT
        if _put_row(t, p, values, i, p.before == ROWS or has_old, p.before != ROWS) or _note_row(t, p, message):
            return LEFT
    return OK


cdef int _take_old(Typing *t, Pattern *p, const uint8_t **at, int values, bint *has_old) noexcept nogil:
    """Take the values that the changed columns of a row had; the others had those of the row."""
    cdef Run *r = t.run
    cdef const Slot *olds = t.slots + OLD
    cdef int item = r.code[olds.node].a[0]
    cdef const uint8_t *start = at[0]
    r.at, r.end = start, olds.end
    if _skip(r, item):
        return LEFT
    at[0] = r.at
    if start[0] != r.code[item].a[1] << 1:
        return OK
    if p.op != 117 or p.before == ROWS:
        return LEFT
    memcpy(t.before, t.after, p.count * sizeof(Token))
    has_old[0] = True
    return _take_image(t, p, start + 1, at[0], values, t.before)


cdef int _note_row(Typing *t, const Pattern *p, int32_t message) noexcept nogil:
    cdef RowMade *made
    if t.order.is_asked and _put_order(t):
        return LEFT
    if t.made_count == t.made_room:
        made = <RowMade *>realloc(t.made, (2 * t.made_room + 16) * sizeof(RowMade))
        if made == NULL:
            return LEFT
        t.made = made
        t.made_room = 2 * t.made_room + 16
    made = t.made + t.made_count
    made.message, made.pattern, made.is_keyed = message, p.number, p.key_count >= 0
    made.key, made.payload, made.order = t.keys.size, t.payloads.size, t.order.made.size
    made.lacks = t.order.lacks and p.after != FIXED
    t.made_count += 1
    return OK


cdef int _reserve_tokens(Typing *t, int count) noexcept nogil:
    cdef Py_ssize_t room = count + 1
    cdef void *kept
    if t.room >= room:
        return OK
    kept = realloc(t.before, room * sizeof(Token))
    if kept == NULL:
        return LEFT
    t.before = <Token *>kept
    kept = realloc(t.after, room * sizeof(Token))
    if kept == NULL:
        return LEFT
    t.after = <Token *>kept
    kept = realloc(t.starts, room * sizeof(Py_ssize_t))
    if kept == NULL:
        return LEFT
    t.starts = <Py_ssize_t *>kept
    # Rows are counted from 1 on, so that no token seems to be of one.
    memset(t.before, 0, room * sizeof(Token))
    memset(t.after, 0, room * sizeof(Token))
    t.room = room
    return OK
