# The order values of rows, which compare byte by byte; `change/order_value.py` says what they are made of.

cdef int _put_integer(Run *o, int64_t value) noexcept nogil:
    """Put out an integer behind a byte that has its sign and length: a greater one has a greater first byte."""
    cdef uint64_t rest = <uint64_t>value if value >= 0 else 0 - <uint64_t>value
    cdef int size = 0
    while rest:
        size += 1
        rest >>= 8
    if _reserve(o, 9):
        return LEFT
    o.out[o.size] = <uint8_t>(128 + size if value >= 0 else 128 - size)
    o.size += 1
    while size > 0:
        size -= 1
        o.out[o.size] = <uint8_t>(<uint64_t>value >> (8 * size) & 255)
        o.size += 1
    return OK


cdef int _put_integers(Run *o, const int64_t *numbers, int count) noexcept nogil:
    cdef int i
    for i in range(count):
        if _put_integer(o, numbers[i]):
            return LEFT
    return _put(o, 0)


cdef int _put_ordered_text(Run *o, const uint8_t *at, Py_ssize_t size) noexcept nogil:
    """Put out a text, in which a zero byte has another behind it that no end has."""
    cdef const uint8_t *end = at + size
    cdef const uint8_t *zero
    if _reserve(o, size + 2):
        return LEFT
    while at < end:
        zero = <const uint8_t *>memchr(at, 0, end - at)
        if zero == NULL:
            zero = end
        if _put_bytes(o, at, zero - at):
            return LEFT
        if zero < end and (_put(o, 0) or _put(o, 255)):
            return LEFT
        at = zero + 1 if zero < end else end
    return _put(o, 0) or _put(o, 0)


cdef int _put_file_order(Run *o, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Put out a file's name as it sorts: numbers in it have 20 digits, and one with zeros before them has its name behind."""
    cdef const uint8_t *at = start
    cdef const uint8_t *end = start + size
    cdef const uint8_t *first
    cdef const uint8_t *digits
    cdef bint has_zeros = False, differs = False
    cdef Py_ssize_t i
    if _reserve(o, size + 1):
        return LEFT
    while at < end:
        first = at
        while at < end and not 48 <= at[0] <= 57:
            at += 1
        if _put_bytes(o, first, at - first):
            return LEFT
        first = digits = at
        while digits < end and digits[0] == 48:
            digits += 1
        at = digits
        while at < end and 48 <= at[0] <= 57:
            at += 1
        if at == first:
            continue
        has_zeros = has_zeros or (at - first > 1 and first[0] == 48)
        differs = differs or at - first != max(20, at - digits)
        for i in range(20 - (at - digits)):
            if _put(o, 48):
                return LEFT
        if _put_bytes(o, digits, at - digits):
            return LEFT
    if differs and has_zeros:
        return _put(o, 32) or _put_bytes(o, start, size)
    return OK


cdef int _take_place(Run *r, Told *fields, const uint8_t *at, Py_ssize_t size) noexcept nogil:
    """Take the encoded fields of a place, where they are not null, over those that were taken before."""
    cdef int i
    cdef int64_t value
    r.at, r.end = at, at + size
    for i in range(FIELDS):
        if r.at >= r.end or (r.at[0] != 0 and r.at[0] != 2):
            return LEFT
        r.at += 1
        if r.at[-1] == 0:
            continue
        if _read_long(r, &value):
            return LEFT
        fields[i].has, fields[i].value, fields[i].start = True, value, r.at
        if i == TOPIC or i == FILE_:
            if value < 0 or value > r.end - r.at:
                return LEFT
            r.at += value
    return OK


cdef int _find_place(Typing *t, const Pattern *p, bint *is_place) noexcept nogil:
    """Give the place of a message as it sorts, and whether it orders arrivals: else its fields are none, unless they have an offset."""
    cdef Ordering *o = &t.order
    cdef Told *fields = o.place
    cdef bint is_offset, is_line
    cdef int i
    memset(fields, 0, FIELDS * sizeof(Told))
    if _take_place(t.run, fields, p.place, p.place_size) or _take_place(t.run, fields, t.place, t.place_size):
        return LEFT
    is_offset = fields[OFFSET].has and (not fields[TOPIC].has or fields[PARTITION].has)
    is_line = fields[FILE_].has and fields[LINE].has
    is_place[0] = is_offset or is_line
    o.file.size = 0
    if is_line and not is_offset:
        if _put_file_order(o.file, fields[FILE_].start, fields[FILE_].value):
            return LEFT
        for i in range(FILE_):
            fields[i].value = 0
        return OK
    for i in range(FIELDS):
        if not fields[OFFSET].has or i == LINE:
            fields[i].value = 0
    return OK


cdef int _begin_order(Typing *t, const Pattern *p) noexcept nogil:
    """Put out what the order values of a message's rows begin with; stop at one that has neither numbers nor a place."""
    cdef Ordering *o = &t.order
    cdef const Told *place = o.place
    cdef bint is_place, is_by_place
    cdef int numbers = t.number_count if t.number_count > 0 else 0
    o.row = 0
    o.lane = NULL
    o.head.size = 0
    if _find_place(t, p, &is_place) or (t.number_count < 0 and not is_place) or _put(o.head, p.phase):
        return LEFT
    o.rank = 0 if t.number_count < 0 else 1 if p.is_batched and not t.has_event else 2
    is_by_place = p.order == BY_ARRIVAL and is_place
    if is_by_place and o.has_clock:
        if _put_time(t):
            return LEFT
    elif is_by_place:
        if _put(o.head, 4) or _put(o.head, 0):
            return LEFT
    elif p.order == OF_FULL_LOAD:
        if _put(o.head, 0) or _put(o.head, 0):
            return LEFT
    elif _put(o.head, <uint8_t>(1 + o.rank)) or _put_integers(o.head, t.numbers, numbers):
        return LEFT
    if _put_ordered_text(o.head, place[TOPIC].start, place[TOPIC].value) or _put_integer(o.head, place[PARTITION].value):
        return LEFT
    if _put_integer(o.head, place[OFFSET].value) or _put_ordered_text(o.head, o.file.out, o.file.size):
        return LEFT
    if _put_integer(o.head, place[LINE].value) or (is_by_place and _put(o.head, <uint8_t>o.rank)):
        return LEFT
    # The delete of a key that its message moves away never comes here, and everything else has a one.
    return _put_integers(o.head, t.numbers, numbers if is_by_place else 0) or _put(o.head, 1)


cdef int _put_order(Typing *t) noexcept nogil:
    """Put out the order value of the next row of a message."""
    cdef Ordering *o = &t.order
    if _put_bytes(o.made, o.head.out, o.head.size) or _put_integer(o.made, o.row):
        return LEFT
    o.row += 1
    return OK


cdef tuple _orders_taken(Typing *t):
    """Return the order values of the rows that were made, and a bit for each that lacks columns, as columns."""
    cdef Py_ssize_t count = t.made_count, i
    cdef bytes ends = PyBytes_FromStringAndSize(NULL, (count + 1) * sizeof(int32_t))
    cdef bytes lacking = bytes((count + 7) // 8)
    cdef char *at = PyBytes_AS_STRING(ends)
    cdef char *bits = PyBytes_AS_STRING(lacking)
    cdef int32_t end = 0
    memcpy(at, &end, 4)
    for i in range(count):
        end = <int32_t>t.made[i].order
        memcpy(at + 4 * i + 4, &end, 4)
        if t.made[i].lacks:
            bits[i >> 3] = <char>(bits[i >> 3] | 1 << (i & 7))
    return ends, PyBytes_FromStringAndSize(<const char *>t.order.made.out, t.order.made.size), lacking
