# Rows of a column of messages in Arrow's layout; and what a message says before its tables are known.

cdef const char *NO_BYTES = b""
cdef const char *NO_PLACE = b"\0\0\0\0\0"

cdef struct Given:  # the bytes of a value of a column; NULL as their start for a null
    const uint8_t *start
    Py_ssize_t size


cdef int _given_value(const Column *column, Py_ssize_t i, Given *given) noexcept nogil:
    """Give a value of a column; stop at one that is not within the column's bytes."""
    cdef const char *offsets = <const char *>column.offsets.buf
    cdef const uint8_t *validity = <const uint8_t *>column.validity.buf
    cdef Py_ssize_t at = column.first + i
    cdef int32_t begin, end
    given.start = NULL
    given.size = 0
    if column.has_nulls and not validity[at >> 3] >> (at & 7) & 1:
        return OK
    memcpy(&begin, offsets + 4 * at, 4)
    memcpy(&end, offsets + 4 * at + 4, 4)
    if not 0 <= begin <= end <= column.data.len:
        return LEFT
    # Of a column without bytes, the start may be NULL.
    given.start = <const uint8_t *>column.data.buf + begin if end > begin else <const uint8_t *>NO_BYTES
    given.size = end - begin
    return OK


cdef int _put_numbers(Typing *t, Run *o, int rule) noexcept nogil:
    """Put out the numbers of a message whose parts were gathered, so that they compare as bytes; nothing for none."""
    cdef uint64_t number
    cdef int i, k
    if _take_facts(t, rule):
        return LEFT
    if t.number_count < 0:
        return OK
    if _put(o, 1):
        return LEFT
    for i in range(t.number_count):
        number = <uint64_t>t.numbers[i] ^ (<uint64_t>1 << 63)
        for k in range(56, -8, -8):
            if _put(o, <uint8_t>(number >> k & 255)):
                return LEFT
    return OK


cdef int _put_names(Typing *t, Run *o, const uint8_t *start, const uint8_t *end, int values) noexcept nogil:
    """Put out the names of a row image's columns, each with its length; stop at a value that may be none."""
    cdef Run *r = t.run
    cdef int64_t count, i
    cdef const uint8_t *at
    r.at, r.end = start, end
    if _read_long(r, &count) or count < 0 or count > r.end - r.at or _put_long(o, count):
        return LEFT
    for i in range(count):
        at = r.at
        if _skip_text(r) or _put_bytes(o, at, r.at - at):
            return LEFT
        at = r.at
        if _skip(r, values) or _is_word(t, r.code + values, at, r.at):
            return LEFT
    return _take_end(r) if count else OK


cdef int _put_names_of_rows(Typing *t, Run *o, const Slot *slot) noexcept nogil:
    """Put out the names of the columns of each row image in an array."""
    cdef Run *r = t.run
    cdef const Instruction *item = r.code + r.code[slot.node].a[0]
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef int64_t count, i
    if item.kind != OPTIONAL or r.code[item.a[0]].kind != MAP:
        return LEFT
    r.at, r.end = slot.start, slot.end
    if _read_long(r, &count) or count < 0 or count > r.end - r.at or _put_long(o, count):
        return LEFT
    end = r.at
    for i in range(count):
        start = end
        r.at, r.end = start, slot.end
        if _skip(r, r.code[slot.node].a[0]):
            return LEFT
        end = r.at
        if _put(o, start[0]):
            return LEFT
        if start[0] == item.a[1] << 1 and _put_names(t, o, start + 1, end, r.code[item.a[0]].a[0]):
            return LEFT
    return OK


cdef int _put_all_names(Typing *t, Run *o) noexcept nogil:
    """Put out the names of the columns in all row images of a message whose parts were gathered."""
    cdef const Slot *slot
    cdef int part, kind
    for part in range(BEFORE, OLD + 1):
        slot = t.slots + part
        if slot.start == NULL:
            continue
        kind = t.run.code[slot.node].kind
        if _put(o, <uint8_t>part):
            return LEFT
        if kind == ARRAY:
            if _put_names_of_rows(t, o, slot):
                return LEFT
        elif kind != MAP or _put_names(t, o, slot.start, slot.end, t.run.code[slot.node].a[0]):
            return LEFT
    return OK


cdef tuple _surveyed(Typing *t, bytes message, dict rules):
    """Return what a message says before its tables are known, as `RowEngine.survey` does."""
    cdef Py_ssize_t numbers
    if _gathered(t, _start(message), PyBytes_GET_SIZE(message)):
        return None
    fixed = PyBytes_FromStringAndSize(<const char *>t.fixed.out, t.fixed.size)
    rule = rules.get(fixed)
    t.said.size = 0
    if rule is None or _put_numbers(t, t.said, rule):
        return fixed, None, None
    numbers = t.said.size
    if _put_all_names(t, t.said):
        return fixed, None, None
    return (
        fixed,
        PyBytes_FromStringAndSize(<const char *>t.said.out, numbers),
        PyBytes_FromStringAndSize(<const char *>t.said.out + numbers, t.said.size - numbers),
    )


cdef tuple _taken(Typing *t):
    """Return the rows that were made as columns."""
    cdef Py_ssize_t count = t.made_count, i
    cdef bytes messages = PyBytes_FromStringAndSize(NULL, count * sizeof(int32_t))
    cdef bytes patterns = PyBytes_FromStringAndSize(NULL, count * sizeof(int32_t))
    cdef bytes keys = PyBytes_FromStringAndSize(NULL, (count + 1) * sizeof(int32_t))
    cdef bytes payloads = PyBytes_FromStringAndSize(NULL, (count + 1) * sizeof(int32_t))
    cdef bytes keyed = bytes((count + 7) // 8)
    cdef char *message = PyBytes_AS_STRING(messages)
    cdef char *pattern = PyBytes_AS_STRING(patterns)
    cdef char *key = PyBytes_AS_STRING(keys)
    cdef char *payload = PyBytes_AS_STRING(payloads)
    cdef char *bits = PyBytes_AS_STRING(keyed)
    cdef const RowMade *made
    cdef int32_t end = 0
    memcpy(key, &end, 4)
    memcpy(payload, &end, 4)
    for i in range(count):
        made = t.made + i
        memcpy(message + 4 * i, &made.message, 4)
        memcpy(pattern + 4 * i, &made.pattern, 4)
        end = <int32_t>made.key
        memcpy(key + 4 * i + 4, &end, 4)
        end = <int32_t>made.payload
        memcpy(payload + 4 * i + 4, &end, 4)
        if made.is_keyed:
            bits[i >> 3] = <char>(bits[i >> 3] | 1 << (i & 7))
    return (
        messages, patterns, keyed,
        keys, PyBytes_FromStringAndSize(<const char *>t.keys.out, t.keys.size),
        payloads, PyBytes_FromStringAndSize(<const char *>t.payloads.out, t.payloads.size),
    )
