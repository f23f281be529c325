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
        while at < end and 48 <= at[0] <= 57:
            at += 1
    else:
        return 0
    if at < end and at[0] == 46:
        kind = FRACTION
        at += 1
        if at >= end or not 48 <= at[0] <= 57:
            return 0
        while at < end and 48 <= at[0] <= 57:
            at += 1
    if at < end and (at[0] | 32) == 101:
        kind = OTHER
        at += 1
        if at < end and (at[0] == 43 or at[0] == 45):
            at += 1
        if at >= end or not 48 <= at[0] <= 57:
            return 0
        while at < end and 48 <= at[0] <= 57:
            at += 1
    r.at = at
    r.odd |= (kind == INTEGER and at - start[0] >= LONG_DIGITS) or (kind == OTHER and start[0][1] == 48)
    return kind


cdef inline bint _as_long(const uint8_t *at, const uint8_t *end, int64_t *value) noexcept nogil:
    """Return whether a canonical integer has at most 64 bits, and what it is."""
    cdef bint negative = at[0] == 45
    cdef uint64_t size = 0
    at += negative
    if end - at > 19:
        return False
    while at < end:
        size = size * 10 + (at[0] - 48)
        at += 1
    if negative:
        if size > <uint64_t>1 << 63:
            return False
        value[0] = <int64_t>(0 - size)
        return True
    value[0] = <int64_t>size
    return size < <uint64_t>1 << 63


cdef double[23] TENS = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22]


cdef bint _is_repr(const uint8_t *at, Py_ssize_t size, double *value) noexcept with gil:
    """Return whether a short number is what Python prints for its double."""
    cdef char text[32]
    cdef char *printed
    cdef bint equal = False
    memcpy(text, at, size)
    text[size] = 0
    try:
        value[0] = PyOS_string_to_double(text, NULL, None)
        printed = PyOS_double_to_string(value[0], 114, 0, 2, NULL)
        equal = strcmp(printed, text) == 0
        py_free(printed)
    except BaseException:
        return False
    return equal


cdef bint _as_double(const uint8_t *at, const uint8_t *end, double *value) noexcept nogil:
    """Return whether a number without exponent is the shortest text of a double, and which."""
    cdef const uint8_t *start = at
    cdef Py_ssize_t size = end - at
    cdef uint64_t digits = 0
    cdef int places = -1
    cdef bint negative = at[0] == 45
    cdef Py_ssize_t figures = 0
    if size > 25:
        return False
    at += negative
    if size <= 16:
        while at < end:
            if at[0] == 46:
                places = 0
            else:
                digits = digits * 10 + (at[0] - 48)
                if places >= 0:
                    places += 1
            at += 1
        if (end - 1)[0] == 48:
            if (end - 2)[0] != 46:
                return False
        elif digits < TENS[places] * 0.0001:
            # Both sides are exact where it matters: digits is below 10^15, and a text of 0.0001 is not below it.
            return False
        value[0] = <double>digits / TENS[places]
        if negative:
            value[0] = -value[0]
        return True
    while at < end:
        if at[0] != 46 and (figures or at[0] != 48):
            figures += 1
        at += 1
    return figures <= 17 and _is_repr(start, size, value)


cdef int _render_digits(Run *r, int64_t value) noexcept nogil:
    cdef uint8_t digits[20]
    cdef int size = 0
    cdef uint64_t left = <uint64_t>value if value >= 0 else 0 - <uint64_t>value
    if value < 0 and _put(r, 45):
        return LEFT
    while True:
        size += 1
        digits[20 - size] = 48 + left % 10
        left //= 10
        if left == 0:
            break
    return _put_bytes(r, digits + 20 - size, size)


cdef int _render_repr(Run *r, double value) noexcept with gil:
    cdef char *printed
    cdef int left
    cdef Py_ssize_t size = 0
    try:
        printed = PyOS_double_to_string(value, 114, 0, 2, NULL)
    except BaseException:
        return LEFT
    while printed[size]:
        size += 1
    left = _put_bytes(r, <const uint8_t *>printed, size)
    py_free(printed)
    return left


cdef int _render_double(Run *r, double value) noexcept nogil:
    """Put out the shortest text of a double that has one without exponent."""
    cdef double size = -value if value < 0 else value
    cdef int places
    cdef int64_t digits
    cdef Py_ssize_t place, first
    cdef uint64_t bits
    if value == 0:
        memcpy(&bits, &value, 8)
        return _put_bytes(r, <const uint8_t *>b"-0.0", 4) if bits else _put_bytes(r, <const uint8_t *>b"0.0", 3)
    if not (0.0001 <= size < 1e16):
        return LEFT
    for places in range(1, 7):
        digits = <int64_t>(size * TENS[places] + 0.5)
        if size * TENS[places] >= 1e15:
            break
        if <double>digits / TENS[places] == size:
            if value < 0 and _put(r, 45):
                return LEFT
            if _render_digits(r, digits // <int64_t>TENS[places]) or _put(r, 46):
                return LEFT
            digits = digits % <int64_t>TENS[places]
            if _reserve(r, places):
                return LEFT
            first, place = r.size, r.size + places
            r.size = place
            while place > first:
                place -= 1
                r.out[place] = 48 + digits % 10
                digits //= 10
            return OK
    return _render_repr(r, value)
