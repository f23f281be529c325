# Payload to text, the quick way: scalars as they mostly are, with pointers kept in variables (see quick.pxi).

cdef enum:
    ENTRY = 160  # bytes of text that a value takes at the most here, and copies behind it


cdef inline const uint8_t *_show_text(Run *r, const uint8_t *at, uint8_t **out) noexcept nogil:
    """Put out a short string that needs no escapes."""
    cdef const uint8_t *stop
    cdef uint8_t *to = out[0]
    cdef uint32_t not_ascii = 0
    if at >= r.end or at[0] & 0x81 or at[0] >> 1 > r.end - at - 1:
        return NULL
    stop = at + 1 + (at[0] >> 1)
    at += 1
    to[0] = 34
    if cdcavro_copy_plain(to + 1, at, stop, r.end, &not_ascii) != stop:
        return NULL
    if not_ascii and not cdcavro_is_utf8(at, stop):
        return NULL
    to += stop - at + 1
    to[0] = 34
    out[0] = to + 1
    return stop


cdef inline const uint8_t *_show_long(Run *r, const uint8_t *at, bint is_int, uint8_t **out) noexcept nogil:
    """Put out an integer of up to 8 bytes."""
    cdef uint64_t read = 0, value
    cdef int shift = 0
    cdef uint8_t text[48]
    cdef uint8_t *start
    if r.end - at < 9:
        return NULL
    while at[0] >= 0x80:
        read |= <uint64_t>(at[0] & 0x7F) << shift
        at += 1
        shift += 7
        if shift > 49:
            return NULL
    if at[0] == 0 and shift:
        return NULL
    read |= <uint64_t>at[0] << shift
    value = (read >> 1) + (read & 1)
    if is_int and value > 0x7FFFFFFF:
        return NULL
    start = cdcavro_digits(text + 24, value)
    start -= 1
    start[0] = 45
    start += not read & 1
    memcpy(out[0], start, 24)
    out[0] += text + 24 - start
    return at + 1


cdef inline const uint8_t *_show_symbol(
    Run *r, const Instruction *symbols, const uint8_t *at, uint8_t **out
) noexcept nogil:
    cdef const int32_t *symbol
    if at >= r.end or at[0] & 0x81 or at[0] >> 1 >= symbols.a[1]:
        return NULL
    symbol = r.symbols + symbols.a[0] + at[0]
    if symbol[1] > SLACK:
        return NULL
    memcpy(out[0], r.texts + symbol[0], SLACK)
    out[0] += symbol[1]
    return at + 1


cdef inline const uint8_t *_show_value(Run *r, const Instruction *type, const uint8_t *at, uint8_t **out) noexcept nogil:
    """Put out a scalar of up to ENTRY bytes, and return where it ends; NULL for anything else, and for what is faulty."""
    cdef int branch = -1
    if type.kind == OPTIONAL or type.kind == COLUMN:
        if at >= r.end:
            return NULL
        branch = at[0]
        at += 1
        if branch == (type.a[2] if type.kind == OPTIONAL else type.a[0]) << 1:
            memcpy(out[0], b"null", 4)
            out[0] += 4
            return at
    if type.kind == OPTIONAL:
        if branch != type.a[1] << 1:
            return NULL
        type = r.code + type.a[0]
        if type.kind == COLUMN:
            return NULL
    if type.kind == COLUMN:
        if branch == type.a[4] << 1:
            return _show_text(r, at, out)
        return _show_long(r, at, False, out) if branch == type.a[2] << 1 else NULL
    if type.kind == STRING:
        return _show_text(r, at, out)
    if type.kind == LONG or type.kind == INT:
        return _show_long(r, at, type.kind == INT, out)
    return _show_symbol(r, type, at, out) if type.kind == ENUM else NULL


cdef int _render_quick_entries(
    Run *r, int node, uint32_t own, int32_t **follows, int64_t *count, bint *first
) noexcept nogil:
    """Put out the entries of a map that are the expected ones, as far as they are plain."""
    cdef const Instruction *type = r.code + r.code[node].a[0]
    cdef const uint8_t *at = r.at
    cdef const uint8_t *datum
    cdef uint64_t stamp = _stamp(r, own)
    cdef uint8_t *out = r.out + r.size
    cdef uint8_t *written = out
    cdef Known *known
    while count[0]:
        known = _guess(r, node, follows[0][0])
        if known == NULL or known.stamp == stamp:
            break
        if r.room - (written - r.out) < known.label_size + ENTRY:
            r.size = written - r.out
            if _reserve(r, known.label_size + ENTRY):
                return LEFT
            written = r.out + r.size
        datum = known.label + known.label_size
        if not cdcavro_begins(at, r.end, datum, known.size + 1):
            break
        out = written
        if not first[0]:
            out[0] = 44
            out += 1
        cdcavro_copy(out, known.label, known.label_size, datum + LONGEST)
        out += known.label_size
        datum = _show_value(r, type, at + known.size + 1, &out)
        if datum == NULL:
            break
        at, written = datum, out
        first[0] = False
        known.stamp = stamp
        follows[0] = &known.next
        count[0] -= 1
    r.at, r.size = at, written - r.out
    return OK


cdef inline int _render_member(Run *r, const Member *member, bint first, int level) noexcept nogil:
    """Put out a member that has no patch."""
    cdef uint8_t *out
    cdef const uint8_t *label = r.texts + member.label
    cdef const uint8_t *after
    if _reserve(r, member.size + ENTRY):
        return LEFT
    out = r.out + r.size
    if not first:
        out[0] = 44
        out += 1
    cdcavro_copy(out, label, member.size, label + member.size + SLACK)
    out += member.size
    r.size = out - r.out
    after = _show_value(r, r.code + member.node, r.at, &out)
    if after == NULL:
        return _render(r, member.node, level)
    r.at, r.size = after, out - r.out
    return OK
