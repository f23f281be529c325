# Row images: the columns of a row found by name, and written as the record of its table's version.

cdef int _cell_of(const Pattern *p, int expected, const uint8_t *name, Py_ssize_t size) noexcept nogil:
    """Return the number of the cell of a column, -1 for an unknown one; it is most likely the expected one."""
    cdef const Cell *cell
    cdef uint64_t slot
    cdef int probes = 0
    if expected < p.count:
        cell = p.cells + expected
        if cell.size == size and memcmp(p.facts.texts + cell.name, name, size) == 0 and cell.op != GONE:
            return expected
    slot = cdcavro_hash(name, size)
    while True:
        slot &= p.index_room - 1
        if p.index[slot] < 0 or probes > <int>p.index_room:
            return -1
        cell = p.cells + p.index[slot]
        if cell.size == size and memcmp(p.facts.texts + cell.name, name, size) == 0:
            return p.index[slot]
        slot += 1
        probes += 1


cdef int _take_image(Typing *t, Pattern *p, const uint8_t *start, const uint8_t *end, int values, Token *tokens) noexcept nogil:
    """Find the columns of a row image by their names; a later image's values go over those of the one before."""
    cdef Run *r = t.run
    cdef int64_t count, i, size
    cdef const uint8_t *name
    cdef int cell, last = 0
    r.at, r.end = start, end
    if _read_long(r, &count) or count < 0 or count > r.end - r.at:
        return LEFT
    for i in range(count):
        if _read_long(r, &size) or size < 0 or size > r.end - r.at:
            return LEFT
        name = r.at
        r.at += size
        cell = _cell_of(p, p.follows[last], name, size)
        if cell < 0:
            return LEFT
        p.follows[last] = cell
        last = cell + 1
        tokens[cell].start = r.at
        if _skip(r, values) or _is_word(t, r.code + values, tokens[cell].start, r.at):
            return LEFT
        tokens[cell].end = r.at
        tokens[cell].row = t.row
    return _take_end(r) if count else OK


cdef bint _is_word(Typing *t, const Instruction *column, const uint8_t *start, const uint8_t *end) noexcept nogil:
    """Return whether a value may stand for one that the source did not give."""
    cdef int i, index = start[0] >> 1
    cdef int32_t first = 0
    if t.word_count == 0:
        return False
    if index == column.a[6]:
        return True
    if index != column.a[4]:
        return False
    for i in range(t.word_count):
        # Behind the branch stands a length, in one byte or more, and the text is the rest.
        if end - start > t.word_ends[i] - first and memcmp(end - (t.word_ends[i] - first), t.words + first, t.word_ends[i] - first) == 0:
            return True
        first = t.word_ends[i]
    return False


cdef int _put_image(Typing *t, const Pattern *p, int values, const Token *tokens, const Token *before, Py_ssize_t *starts) noexcept nogil:
    """Put out a row; a value that an earlier row of the same payload has is copied from there."""
    cdef Run *o = t.payloads
    cdef const Cell *cell
    cdef int i, absent = 0
    cdef Py_ssize_t start, size
    for i in range(p.count):
        cell = p.cells + i
        start = o.size
        if cell.op == GONE:
            if _put(o, <uint8_t>cell.null):
                return LEFT
        elif tokens[i].row != t.row:
            absent += 1
            if _put(o, <uint8_t>cell.null):
                return LEFT
        elif before != NULL and before[i].row == t.row and before[i].start == tokens[i].start:
            size = starts[i + 1] - starts[i]
            if _reserve(o, size):
                return LEFT
            memcpy(o.out + o.size, o.out + starts[i], size)
            o.size += size
        elif _put_cell(t.run, o, cell, t.run.code + values, tokens + i, &p.facts):
            return LEFT
        if before == NULL:
            starts[i] = start
    if before == NULL:
        starts[p.count] = o.size
    return _put_absent(t, p, tokens, absent)


cdef int _put_absent(Typing *t, const Pattern *p, const Token *tokens, int absent) noexcept nogil:
    """Put out that no value is kept as text, and the names of the columns that a row does not have."""
    cdef Run *o = t.payloads
    cdef int i
    t.order.lacks = absent > 0
    if _put(o, 0):
        return LEFT
    if absent:
        if _put_long(o, absent):
            return LEFT
        for i in range(p.count):
            if p.cells[i].op != GONE and tokens[i].row != t.row:
                if _put_long(o, p.cells[i].size) or _put_bytes(o, p.facts.texts + p.cells[i].name, p.cells[i].size):
                    return LEFT
    return _put(o, 0)


cdef int _put_key(Typing *t, const Pattern *p, int values, const Token *tokens) noexcept nogil:
    """Put out the key of a row."""
    cdef int i
    for i in range(p.key_count):
        if tokens[p.key[i]].row != t.row:
            return LEFT
        if _put_cell(t.run, t.keys, p.cells + p.key[i], t.run.code + values, tokens + p.key[i], &p.facts):
            return LEFT
    return _put(t.keys, 0)


cdef bint _is_equal(const Token *one, const Token *other) noexcept nogil:
    return one.end - one.start == other.end - other.start and memcmp(one.start, other.start, one.end - one.start) == 0


cdef int _keys_agree(Typing *t, const Pattern *p, const Token *tokens) noexcept nogil:
    """Stop unless the key beside a row has the row's own values."""
    cdef int i, cell
    cdef const uint8_t *name
    cdef Py_ssize_t size
    for i in range(t.key_count):
        name = t.key_names[i]
        size = t.key_sizes[i]
        # The length before the name has as many bytes as its value needs.
        while size > 0 and name[0] >= 0x80:
            name += 1
            size -= 1
        cell = _cell_of(p, i, name + 1, size - 1)
        if cell < 0 or tokens[cell].row != t.row or not _is_equal(tokens + cell, &t.key_values[i]):
            return LEFT
    return OK


cdef int _put_times(Run *o, bint known, int64_t micros) noexcept nogil:
    """Put out an instant in milliseconds and in microseconds."""
    cdef int64_t millis
    if not known:
        return _put(o, 0) or _put(o, 0)
    millis = micros // 1000
    if micros % 1000 < 0:
        millis -= 1
    return _put(o, 2) or _put_long(o, millis) or _put(o, 2) or _put_long(o, micros)


cdef int _pass_place(Run *r, const uint8_t **at, const uint8_t *end, bint is_text) noexcept nogil:
    """Pass one field of a place by, which is null or has a value."""
    cdef int64_t value
    r.at, r.end = at[0], end
    if r.at >= end or (r.at[0] != 0 and r.at[0] != 2):
        return LEFT
    r.at += 1
    if at[0][0] and (_skip_text(r) if is_text else _read_long(r, &value)):
        return LEFT
    at[0] = r.at
    return OK


cdef int _put_place(Typing *t, const Pattern *p) noexcept nogil:
    """Put out where a message arrived: topic, partition, offset, file and line, each as told, or else as its pattern has it."""
    cdef const uint8_t *told = t.place
    cdef const uint8_t *own = p.place
    cdef const uint8_t *first
    cdef const uint8_t *own_first
    cdef int i
    for i in range(5):
        first, own_first = told, own
        if _pass_place(t.run, &told, t.place + t.place_size, i == 0 or i == 3):
            return LEFT
        if _pass_place(t.run, &own, p.place + p.place_size, i == 0 or i == 3):
            return LEFT
        if first[0] == 0:
            if _put_bytes(t.payloads, own_first, own - own_first):
                return LEFT
        elif _put_bytes(t.payloads, first, told - first):
            return LEFT
    return OK


cdef int _put_source(Typing *t, const Pattern *p, int64_t row) noexcept nogil:
    """Put out where and when a change was made, what it did, and when its message was."""
    cdef Run *o = t.payloads
    cdef const Slot *transaction = t.slots + TRANSACTION
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef int i
    if _put_bytes(o, p.head, p.head_size) or _put_times(o, t.has_event, t.event):
        return LEFT
    if t.number_count < 0:
        if _put(o, 0):
            return LEFT
    else:
        if _put(o, 2) or _put_long(o, t.number_count):
            return LEFT
        for i in range(t.number_count):
            if _put_long(o, t.numbers[i]):
                return LEFT
        if t.number_count and _put(o, 0):
            return LEFT
    if transaction.start == NULL:
        transaction = t.slots + TRANSACTION_ELSE
    if transaction.start == NULL:
        if _put(o, 0):
            return LEFT
    elif _text_at(t.run, transaction, &start, &end):
        return LEFT
    elif start == end and p.bare_transaction:
        if _put(o, 0):
            return LEFT
    elif _put(o, 2) or _put_long(o, end - start) or _put_bytes(o, start, end - start):
        return LEFT
    if _put_place(t, p) or _put(o, 2) or _put_long(o, row):
        return LEFT
    return _put(o, 2) or _put(o, p.op) or _put_times(o, t.has_system, t.system)


cdef int _put_row(Typing *t, Pattern *p, int values, int64_t number, bint has_before, bint has_after) noexcept nogil:
    """Put out the key and the envelope of a row, whose tokens were taken."""
    cdef const Token *tokens = t.before if has_before else t.after
    cdef int i
    if has_before and has_after:
        for i in range(p.same_count):
            if t.before[p.same[i]].row != t.row or t.after[p.same[i]].row != t.row:
                return LEFT
            if not _is_equal(t.before + p.same[i], t.after + p.same[i]):
                return LEFT
    if p.key_count >= 0 and _put_key(t, p, values, tokens):
        return LEFT
    if _put(t.payloads, 2 if has_before else 0):
        return LEFT
    if has_before and _put_image(t, p, values, t.before, NULL, t.starts):
        return LEFT
    if _put(t.payloads, 2 if has_after else 0):
        return LEFT
    if has_after and _put_image(t, p, values, t.after, t.before if has_before else NULL, t.starts):
        return LEFT
    return _put_source(t, p, number)
