# Text to payload, the quick way: values that are as plain as most are, in the order of the last message.
#
# Pointers are kept in variables of these functions, because whoever goes through the run has to read each again after
# every byte that is put out. What is put out here is never longer than what it takes, so room is made only once; but for
# short doubles, which are put out only as long as what is behind them still has its room.

cdef inline const uint8_t *_put_text(Run *r, const uint8_t *at, uint8_t **out) noexcept nogil:
    """Put out a string that has no escapes."""
    cdef uint8_t *to = out[0]
    cdef const uint8_t *stop
    cdef uint32_t not_ascii
    at += 1
    stop = cdcavro_copy_plain(to + 1, at, r.end, r.end, &not_ascii)
    if stop >= r.end or stop[0] != 34:
        return NULL
    if stop - at < 64:
        to[0] = <uint8_t>((stop - at) << 1)
        out[0] = to + 1 + (stop - at)
        return stop + 1
    to += cdcavro_varint(to, <uint64_t>(stop - at) << 1)
    memcpy(to, at, stop - at)
    out[0] = to + (stop - at)
    return stop + 1


cdef inline const uint8_t *_put_number(
    Run *r, const Instruction *type, const uint8_t *start, uint8_t **out
) noexcept nogil:
    """Put out an integer of up to 18 digits, or in a column a double."""
    cdef bint negative = start[0] == 45
    cdef const uint8_t *at = start + negative
    cdef const uint8_t *end = r.end if r.end - at < 40 else at + 40  # what is longer is not looked at twice
    cdef const uint8_t *stop = cdcavro_pass_digits(at, end)
    cdef uint8_t *to = out[0]
    cdef uint64_t whole
    cdef double value
    if stop == at or stop - at > 18 or stop >= end or (at[0] == 48 and stop - at > 1):
        return NULL
    if stop[0] == 46 and type.kind == COLUMN:
        at = cdcavro_pass_digits(stop + 1, end)
        if at == stop + 1 or r.room - (to - r.out) < r.end - at + 9 or not _as_double(start, at, &value):
            return NULL
        to[0] = <uint8_t>(type.a[3] << 1)
        memcpy(to + 1, &value, 8)
        out[0] = to + 9
        return at
    whole = cdcavro_whole(at, stop)
    if whole > 0x7FFFFFFF and type.kind == INT or whole == 0 and negative:
        return NULL
    if type.kind == COLUMN:
        to[0] = <uint8_t>(type.a[2] << 1)
        to += 1
    out[0] = to + cdcavro_varint(to, (whole << 1) - negative)
    return stop


cdef inline const uint8_t *_put_word(
    Run *r, const Instruction *type, const uint8_t *at, uint8_t **out
) noexcept nogil:
    """Put out true or false."""
    cdef int size = 4 if at[0] == 116 else 5
    if r.end - at < size or memcmp(at, b"true" if at[0] == 116 else b"false", size) != 0:
        return NULL
    if type.kind == COLUMN:
        out[0][0] = <uint8_t>(type.a[1] << 1)
        out[0] += 1
    out[0][0] = at[0] == 116
    out[0] += 1
    return at + size


cdef inline const uint8_t *_put_symbol(
    Run *r, const Instruction *symbols, const uint8_t *at, uint8_t **out
) noexcept nogil:
    """Put out a string that is a symbol."""
    cdef const int32_t *symbol = r.symbols + symbols.a[0]
    cdef int i
    for i in range(symbols.a[1]):
        if cdcavro_begins(at, r.end, r.texts + symbol[0], symbol[1]) and i != symbols.a[2]:
            out[0] += cdcavro_varint(out[0], <uint64_t>i << 1)
            return at + symbol[1]
        symbol += 2
    return NULL


cdef inline const uint8_t *_put_value(Run *r, const Instruction *type, const uint8_t *at, uint8_t **out) noexcept nogil:
    """Put out a scalar as it mostly is, and return where it ends; NULL for anything else."""
    cdef uint8_t c = at[0]
    if c == 110 and (type.kind == OPTIONAL or type.kind == COLUMN):
        out[0][0] = <uint8_t>((type.a[2] if type.kind == OPTIONAL else type.a[0]) << 1)
        out[0] += 1
        return at + 4 if r.end - at > 4 and memcmp(at, b"null", 4) == 0 else NULL
    if type.kind == OPTIONAL:
        out[0][0] = <uint8_t>(type.a[1] << 1)
        out[0] += 1
        type = r.code + type.a[0]
    if c == 34:
        if type.kind == COLUMN:
            out[0][0] = <uint8_t>(type.a[4] << 1)
            out[0] += 1
        elif type.kind == ENUM:
            return _put_symbol(r, type, at, out)
        return _put_text(r, at, out) if type.kind == COLUMN or type.kind == STRING else NULL
    if type.kind == COLUMN or type.kind == LONG or type.kind == INT:
        if c <= 57:
            return _put_number(r, type, at, out)
    return _put_word(r, type, at, out) if (c == 116 or c == 102) and (type.kind == COLUMN or type.kind == BOOLEAN) else NULL


cdef inline bint _is_scalar_type(Run *r, const Instruction *type) noexcept nogil:
    """Return whether values of a type may be put out the quick way."""
    if type.kind == OPTIONAL:
        type = r.code + type.a[0]
    return type.kind <= ENUM or type.kind == COLUMN


cdef inline bint _goes_on(const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Return whether an object goes on or ends right behind a value."""
    return at < end and (at[0] == 44 or at[0] == 125)


cdef inline Known *_put_name(
    Run *r, int node, int number, uint64_t stamp, const uint8_t **at, uint8_t **out
) noexcept nogil:
    """Put out the name that is to be expected, if that is next and the object does not have it yet; else return NULL."""
    cdef Known *known = _guess(r, node, number)
    cdef const uint8_t *label
    if known == NULL or known.stamp == stamp:
        return NULL
    label = known.label
    if r.end - at[0] <= known.label_size or not cdcavro_begins(at[0], r.end, label, known.label_size):
        return NULL
    at[0] += known.label_size
    label += known.label_size
    cdcavro_copy(out[0], label, known.size + 1, label + LONGEST)
    out[0] += known.size + 1
    return known


cdef int _write_quick_entries(
    Run *r, int node, uint32_t own, int32_t **follows, int64_t *count, Known **known
) noexcept nogil:
    """Write the entries of a map that are the expected ones, up to the end, or to the first that is not as plain as most.

    `known` is the name of that one, which is passed by, NULL if it is not the expected one either.
    """
    cdef const Instruction *type = r.code + r.code[node].a[0]
    cdef const uint8_t *at = r.at
    cdef const uint8_t *after
    cdef uint8_t *out
    cdef uint8_t *written
    cdef uint64_t stamp = _stamp(r, own)
    if _reserve(r, r.end - r.at):
        return LEFT
    out = written = r.out + r.size
    while True:
        known[0] = _put_name(r, node, follows[0][0], stamp, &at, &out)
        if known[0] == NULL:
            break
        after = _put_value(r, type, at, &out)
        if after == NULL or not _goes_on(after, r.end):
            break
        known[0].stamp = stamp
        follows[0] = &known[0].next
        count[0] += 1
        at, written = after + 1, out
        if after[0] == 125:
            r.at, r.size = at, written - r.out
            return ENDED
    r.at, r.size = at, written - r.out
    return OK


cdef inline int _place(Run *r, Cursor *c, int i) noexcept nogil:
    """Begin with a member, which may be there only once."""
    if r.slices[c.base + i].state > LEFT_OUT:
        return LEFT
    if i < c.last:
        c.shuffled = True
        return OK
    if i > c.last + 1 and _leave_out(r, c, c.last + 1, i):
        return LEFT
    c.last = i
    return OK


cdef inline bint _put_other(Run *r, Cursor *c, const uint8_t **at, uint8_t **out) noexcept nogil:
    """Put out a plain entry of the rest map that stands behind another; else say which it is and pass its name by."""
    cdef Slice *slice = r.slices + r.depth - 1
    cdef uint8_t *place = out[0]
    cdef const uint8_t *after
    c.known = _put_name(r, c.others, c.follows[0] - c.record.a[1], _stamp(r, c.own), at, out)
    if c.known == NULL or not c.has_rest:
        return False
    if r.depth == c.base + c.record.a[1] or slice.stop != place - r.out or slice.last_note != r.noted:
        return False
    after = _put_value(r, r.code + r.code[c.others].a[0], at[0], out)
    if after == NULL or not _goes_on(after, r.end):
        return False
    c.known.stamp = _stamp(r, c.own)
    c.follows = &c.known.next
    c.unnamed += 1
    slice.stop = out[0] - r.out
    at[0] = after + 1
    return True


cdef inline bint _put_member(Run *r, Cursor *c, int i, const uint8_t **at, uint8_t **out) noexcept nogil:
    """Put out a plain member."""
    cdef const Member *member = r.members + c.record.a[0] + i
    cdef Slice *slice = r.slices + c.base + i
    cdef Py_ssize_t place = out[0] - r.out
    cdef const uint8_t *after
    if at[0][0] == 110 and member.missing != NULL_:
        return False
    after = _put_value(r, r.code + member.node, at[0], out)
    if after == NULL or not _goes_on(after, r.end):
        return False
    slice.state, slice.start, slice.stop = WRITTEN, place, out[0] - r.out
    slice.first_note = slice.last_note = r.noted
    at[0] = after + 1
    return True


cdef inline const uint8_t *_label_here(Run *r, const Member *member, const uint8_t *at) noexcept nogil:
    """Return where a member's value begins if its name is here, else NULL."""
    if member.size == 0 or r.end - at <= member.size:
        return NULL
    return at + member.size if cdcavro_begins(at, r.end, r.texts + member.label, member.size) else NULL


cdef int _write_quick_members(Run *r, Cursor *c, int *index) noexcept nogil:
    """Write the members of a record that are the expected ones, up to the end, or to the first that is not plain.

    Of that one, the name is passed by and the index given, -1 in the rest map; -2 if it is not the expected one either.
    """
    cdef const uint8_t *at = r.at
    cdef const uint8_t *value
    cdef uint8_t *out
    cdef uint8_t *written
    cdef int i
    if _reserve(r, r.end - r.at):
        return LEFT
    out = written = r.out + r.size
    while True:
        i = c.follows[0]
        if i >= c.record.a[1]:
            if not _put_other(r, c, &at, &out):
                index[0] = -2 if c.known == NULL else -1
                break
        else:
            value = _label_here(r, r.members + c.record.a[0] + i, at)
            if value == NULL:
                index[0] = -2
                break
            at = value
            c.follows = r.follows + c.record.a[0] + i
            if i == c.last + 1:
                c.last = i
            else:
                r.size = written - r.out
                if _place(r, c, i) or _reserve(r, r.end - at):
                    return LEFT
                out = written = r.out + r.size
            if not _put_member(r, c, i, &at, &out):
                index[0] = i
                break
        written = out
        if (at - 1)[0] == 125:
            r.at, r.size = at, written - r.out
            return ENDED
    r.at, r.size = at, written - r.out
    return OK
