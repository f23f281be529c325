# Numbers: scanned, held against the doubles and integers that have the same text, and put out.

cdef enum:
    INTEGER = 1  # without fraction and exponent, in canonical form
    FRACTION = 2
    OTHER = 3  # with an exponent, or -0
    LONG_DIGITS = 19  # of which an integer may be longer than 64 bits


cdef int _scan_number(Run *r, const uint8_t **start) noexcept nogil:
    """Pass a number by (RFC 8259, section 6) and return its kind, 0 for what is no number."""
    cdef const uint8_t *at = r.at
    cdef const uint8_t *end = r.end
    cdef int kind = INTEGER
    start[0] = at
    if at < end and at[0] == 45:
        at += 1
    if at >= end:
        return 0
    if at[0] == 48:
        at += 1
        if at - start[0] == 2:
            kind = OTHER
    elif 49 <= at[0] <= 57:
        at = cdcavro_pass_digits(at, end)
    else:
        return 0
    if at < end and at[0] == 46:
        kind = FRACTION
        at += 1
        if at >= end or not 48 <= at[0] <= 57:
            return 0
        at = cdcavro_pass_digits(at, end)
    if at < end and (at[0] | 32) == 101:
        kind = OTHER
        at += 1
        if at < end and (at[0] == 43 or at[0] == 45):
            at += 1
        if at >= end or not 48 <= at[0] <= 57:
            return 0
        at = cdcavro_pass_digits(at, end)
    r.at = at
    r.odd |= (kind == INTEGER and at - start[0] >= LONG_DIGITS) or (kind == OTHER and start[0][1] == 48)
    return kind


cdef inline bint _as_long(const uint8_t *at, const uint8_t *stop, int64_t *value) noexcept nogil:
    """Return whether a canonical integer has at most 64 bits, and what it is."""
    cdef bint negative = at[0] == 45
    cdef uint64_t size
    at += negative
    if stop - at > 19:
        return False
    size = cdcavro_whole(at, stop)
    if negative:
        if size > <uint64_t>1 << 63:
            return False
        value[0] = <int64_t>(0 - size)
        return True
    value[0] = <int64_t>size
    return size < <uint64_t>1 << 63


cdef int _render_digits(Run *r, int64_t value) noexcept nogil:
    cdef uint8_t text[24]
    cdef uint8_t *start
    start = cdcavro_digits(text + 24, <uint64_t>value if value >= 0 else 0 - <uint64_t>value)
    if value < 0:
        start -= 1
        start[0] = 45
    return _put_bytes(r, start, text + 24 - start)
