# Facts about messages: which of a column are alike in what says what they do, and to which table.

cdef class FactEngine(SurveyEngine):
    """Tells which messages are alike in all but the values of their rows, their times and their numbers.

    Such messages are changes of one operation and table, and none of them is refused if one is not. It needs no places.
    """

    cdef int _survey(self, const uint8_t *start, Py_ssize_t size, int32_t index) noexcept nogil:
        """Note what a message is like."""
        cdef Typing *t = &self.typing
        cdef const Pattern *p
        cdef int32_t number
        if _gathered(t, start, size):
            return LEFT
        p = _find(self.patterns, self.pattern_room, t.fixed.out, t.fixed.size)
        if p == NULL or _take_facts(t, p.position) or _repeats_much(t, p) or (t.key_count and _is_other_key(t)):
            return LEFT
        t.said.size = 0
        if _put_bytes(t.said, <const uint8_t *>&p.number, sizeof(int32_t)) or _put_all_names(t, t.said):
            return LEFT
        number = self._known(t.said.out, t.said.size)
        if number < 0:
            return LEFT
        self.each[index] = number
        return OK

    def numbers(self):
        """Return the number of what each message of the column is like, as 32-bit integers; -1 for what was left."""
        self._alone()
        return PyBytes_FromStringAndSize(<const char *>self.each, self.each_count * sizeof(int32_t))


cdef bint _repeats_much(Typing *t, const Pattern *p) noexcept nogil:
    """Return whether the rows of a message may be too many for what each repeats."""
    cdef Run *r = t.run
    cdef const Slot *rows = t.slots + ROWS
    cdef int64_t count
    if rows.start == NULL:
        return False
    r.at, r.end = rows.start, rows.end
    if _read_long(r, &count) or count > MOST_ROWS:
        return True
    return count > 1 and count > (4 << 20) // (p.weight + t.loose + 1)


cdef bint _is_other_key(Typing *t) noexcept nogil:
    """Return whether the key beside a row may be that of another."""
    cdef const Slot *image = t.slots + (BEFORE if t.slots[AFTER].start == NULL else AFTER)
    cdef int i
    if image.start == NULL or t.run.code[image.node].kind != MAP:
        return True
    for i in range(t.key_count):
        if not _has_value(t, image, i):
            return True
    return False


cdef bint _has_value(Typing *t, const Slot *image, int i) noexcept nogil:
    """Return whether a row has a value of the key, under its name."""
    cdef Run *r = t.run
    cdef const Token *wanted = t.key_values + i
    cdef const uint8_t *at
    cdef Py_ssize_t size
    cdef int64_t count, k
    cdef bint is_named
    r.at, r.end = image.start, image.end
    if _read_long(r, &count):
        return False
    for k in range(count):
        at = r.at
        if _skip_text(r):
            return False
        size = r.at - at
        is_named = size == t.key_sizes[i] and memcmp(at, t.key_names[i], size) == 0
        at = r.at
        if _skip(r, r.code[image.node].a[0]):
            return False
        if is_named:
            return r.at - at == wanted.end - wanted.start and memcmp(at, wanted.start, r.at - at) == 0
    return False
