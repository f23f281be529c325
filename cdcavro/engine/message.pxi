# Text to payload: a whole message, which may stand in a Kafka record.

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
        _forget_names(r.known)
        r.run = 1
    elif r.known.strange > MOST_STRANGE:
        _forget_names(r.known)


cdef extern from *:
    """
    /* As Kafka's clients and Spark's source of Kafka call them. */
    static int cdcavro_is_of_record(const uint8_t *name, ptrdiff_t size) {
        switch (size) {
            case 3: return memcmp(name, "key", 3) == 0;
            case 5: return memcmp(name, "topic", 5) == 0;
            case 6: return memcmp(name, "offset", 6) == 0;
            case 7: return memcmp(name, "headers", 7) == 0;
            case 9: return memcmp(name, "partition", 9) == 0 || memcmp(name, "timestamp", 9) == 0;
            case 13: return memcmp(name, "timestampType", 13) == 0;
            case 14: return memcmp(name, "timestamp_type", 14) == 0;
        }
        return 0;
    }

    /* By its first letter. */
    static inline int cdcavro_may_be_of_record(uint8_t c) {
        return c == 't' || c == 'p' || c == 'o' || c == 'k' || c == 'h' || c == 'v' || c == 92;
    }
    """
    bint cdcavro_may_be_of_record(uint8_t c) noexcept nogil
    bint cdcavro_is_of_record(const uint8_t *name, Py_ssize_t size) noexcept nogil


cdef inline bint _is_value(const uint8_t *name, Py_ssize_t size) noexcept nogil:
    return size == 5 and memcmp(name, b"value", 5) == 0


cdef int _write_beside(Run *r, uint32_t own, int root, Py_ssize_t *start, Py_ssize_t *stop) noexcept nogil:
    """Write the next member of a Kafka record: its value as a payload, of which is told where it stands, others as text."""
    cdef const uint8_t *name
    cdef Py_ssize_t size
    if _take_name(r, &name, &size) or _add_name(r, own, name, size):
        return LEFT
    if _is_value(name, size):
        _skip_space(r)
        start[0] = r.size
        if r.at >= r.end or _write_record(r, root, 2):
            return LEFT
        stop[0] = r.size
        return OK
    if not cdcavro_is_of_record(name, size) or _put(r, 44) or _put_quoted(r, name, name + size, name + size) or _put(r, 58):
        return LEFT
    return _copy_json(r, 2)


cdef int _write_record_of_kafka(Run *r, int root) noexcept nogil:
    """Write the message in a Kafka record; its other members are the first note."""
    cdef Py_ssize_t begin = r.size, start = 0, stop = 0
    cdef bint ended = False
    cdef Note *note
    if _note(r, NULL, 0) or _take(r, 123):
        return LEFT
    r.pointed += 5  # the key of that note
    r.object += 1
    cdef uint32_t own = r.object
    while not ended:
        if _write_beside(r, own, root, &start, &stop) or _is_last_member(r, &ended):
            return LEFT
    if stop == 0:
        return LEFT
    note = r.notes
    note.start = r.said_size
    if _say(r, <const uint8_t *>b"kafka{", 6):
        return LEFT
    note.stop = note.start + 5
    # Each of the others begins with a comma.
    if start > begin and (_say(r, r.out + begin + 1, start - begin - 1) or (r.size > stop and _say(r, <const uint8_t *>b",", 1))):
        return LEFT
    if r.size > stop and _say(r, r.out + stop + 1, r.size - stop - 1):
        return LEFT
    if _say(r, <const uint8_t *>b"}", 1):
        return LEFT
    note.size = r.said_size - note.stop
    memmove(r.out + begin, r.out + start, stop - start)
    r.size = begin + stop - start
    return OK


cdef bint _looks_like_record_of_kafka(Run *r) noexcept nogil:
    """Return whether a message begins with a member of a Kafka record."""
    cdef const uint8_t *start
    cdef Py_ssize_t size
    cdef const uint8_t *at = r.at
    cdef bint looks
    if r.end - at > 2 and at[1] == 34 and not cdcavro_may_be_of_record(at[2]):
        return False
    looks = not _take(r, 123) and not _take_name(r, &start, &size)
    looks = looks and (_is_value(start, size) or cdcavro_is_of_record(start, size))
    r.at = at
    return looks


cdef int _write_message(Run *r, int root, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Append the payload of a message."""
    cdef Py_ssize_t begin = r.size
    if size > r.most_size or not cdcavro_is_utf8(start, start + size):
        return LEFT
    _begin(r, start, size)
    r.said_size = r.pointed = 0
    if not r.code[root].a[3] or not _looks_like_record_of_kafka(r) or _write_record_of_kafka(r, root):
        # What looks like one may be a message all the same.
        _begin(r, start, size)
        r.size = begin
        r.said_size = r.pointed = 0
        if _write(r, root, 1):
            return LEFT
    if _write_extras(r):
        return LEFT
    # The exact way counts only what pointers repeat.
    if r.pointed > FREE and r.pointed - FREE > PROPORTION * (r.size - begin - r.pointed):
        return LEFT
    _skip_space(r)
    return LEFT if r.at != r.end else OK
