# JSON text: white space and words passed by, strings taken and put out, and any value put out in its compact form.


cdef inline void _skip_space(Run *r) noexcept nogil:
    if r.at < r.end and r.at[0] <= 32:
        _skip_spaces(r)


cdef void _skip_spaces(Run *r) noexcept nogil:
    while r.at < r.end and r.at[0] <= 32 and (r.at[0] == 32 or r.at[0] == 10 or r.at[0] == 13 or r.at[0] == 9):
        r.at += 1


cdef inline int _take(Run *r, uint8_t byte) noexcept nogil:
    """Pass one byte by, which must be this one, with white space before it."""
    _skip_space(r)
    if r.at >= r.end or r.at[0] != byte:
        return LEFT
    r.at += 1
    return OK


cdef inline int _take_word(Run *r, const char *word, Py_ssize_t size) noexcept nogil:
    if r.end - r.at < size or memcmp(r.at, word, size) != 0:
        return LEFT
    r.at += size
    return OK


cdef int _hex4(const uint8_t *at) noexcept nogil:
    cdef int value = 0, i
    cdef uint8_t c
    for i in range(4):
        c = at[i]
        if 48 <= c <= 57:
            value = value * 16 + c - 48
        elif 97 <= (c | 32) <= 102:
            value = value * 16 + (c | 32) - 87
        else:
            return -1
    return value


cdef int _put_point(Run *r, uint32_t point) noexcept nogil:
    """Put a character out as UTF-8; there is room for it."""
    cdef uint8_t *out = r.out + r.size
    if point < 0x80:
        out[0] = <uint8_t>point
        r.size += 1
    elif point < 0x800:
        out[0] = <uint8_t>(0xC0 | point >> 6)
        out[1] = <uint8_t>(0x80 | point & 0x3F)
        r.size += 2
    elif point < 0x10000:
        out[0] = <uint8_t>(0xE0 | point >> 12)
        out[1] = <uint8_t>(0x80 | point >> 6 & 0x3F)
        out[2] = <uint8_t>(0x80 | point & 0x3F)
        r.size += 3
    else:
        out[0] = <uint8_t>(0xF0 | point >> 18)
        out[1] = <uint8_t>(0x80 | point >> 12 & 0x3F)
        out[2] = <uint8_t>(0x80 | point >> 6 & 0x3F)
        out[3] = <uint8_t>(0x80 | point & 0x3F)
        r.size += 4
    return OK


cdef int _put_unescaped(Run *r) noexcept nogil:
    """Put out what the escape at this place stands for, and pass it by."""
    cdef int point, low
    cdef uint8_t c
    if r.end - r.at < 2 or _reserve(r, 8):
        return LEFT
    c = r.at[1]
    r.at += 2
    if c == 117:  # u
        if r.end - r.at < 4:
            return LEFT
        point = _hex4(r.at)
        r.at += 4
        if point < 0 or 0xDC00 <= point <= 0xDFFF:
            return LEFT
        if 0xD800 <= point <= 0xDBFF:
            if r.end - r.at < 6 or r.at[0] != 92 or r.at[1] != 117:
                return LEFT
            low = _hex4(r.at + 2)
            if not 0xDC00 <= low <= 0xDFFF:
                return LEFT
            r.at += 6
            point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
        return _put_point(r, point)
    if c == 110:
        c = 10
    elif c == 116:
        c = 9
    elif c == 114:
        c = 13
    elif c == 98:
        c = 8
    elif c == 102:
        c = 12
    elif c != 34 and c != 92 and c != 47:
        return LEFT
    r.out[r.size] = c
    r.size += 1
    return OK


cdef inline int _put_quoted(Run *r, const uint8_t *at, const uint8_t *stop, const uint8_t *end) noexcept nogil:
    """Put out a JSON string, escaped as orjson or Jackson does; it must be UTF-8, and up to `end` may be read."""
    cdef uint32_t not_ascii = 0
    cdef const uint8_t *plain
    if _reserve(r, stop - at + 8):
        return LEFT
    r.out[r.size] = 34
    plain = cdcavro_copy_plain(r.out + r.size + 1, at, stop, end, &not_ascii)
    r.size += plain - at + 1
    if plain != stop:
        return _put_escaped(r, at, plain, stop)
    r.out[r.size] = 34
    r.size += 1
    return LEFT if not_ascii and not cdcavro_is_utf8(at, stop) else OK


cdef int _put_escaped(Run *r, const uint8_t *start, const uint8_t *at, const uint8_t *stop) noexcept nogil:
    """Put out the rest of a text, from an escape on."""
    cdef uint32_t not_ascii = 0
    cdef const uint8_t *plain
    if not cdcavro_is_utf8(start, stop):
        return LEFT
    while at < stop:
        _put_escape(r, at[0])
        at += 1
        if _reserve(r, stop - at + 8):
            return LEFT
        plain = cdcavro_copy_plain(r.out + r.size, at, stop, stop, &not_ascii)
        r.size += plain - at
        at = plain
    return _put(r, 34)


cdef inline void _put_escape(Run *r, uint8_t c) noexcept nogil:
    """Put out the escape of a character; there is room for it."""
    cdef uint8_t *out = r.out + r.size
    cdef uint8_t letter = 0
    out[0] = 92
    if c == 34 or c == 92:
        letter = c
    elif c == 10:
        letter = 110
    elif c == 9:
        letter = 116
    elif c == 13:
        letter = 114
    elif c == 8:
        letter = 98
    elif c == 12:
        letter = 102
    if letter:
        out[1] = letter
        r.size += 2
        return
    memcpy(out + 1, b"u00", 3)
    out[4] = 48 + (c >> 4)
    c &= 15
    out[5] = 48 + c if c < 10 else (55 if r.capitals else 87) + c
    r.size += 6


cdef int _text(Run *r) noexcept nogil:
    """Put the text of a string out, up to its closing quote, without escapes."""
    cdef const uint8_t *start
    cdef uint32_t not_ascii
    if _reserve(r, r.end - r.at + 8):
        return LEFT
    while True:
        start = r.at
        r.at = cdcavro_copy_plain(r.out + r.size, start, r.end, r.end, &not_ascii)
        r.size += r.at - start
        if r.at >= r.end:
            return LEFT
        if r.at[0] == 34:
            r.at += 1
            return OK
        if r.at[0] != 92 or _put_unescaped(r):
            return LEFT


cdef int _copy_json(Run *r, int level) noexcept nogil:
    """Put a JSON value out in its compact form, numbers digit for digit, strings escaped as orjson does."""
    cdef uint8_t c
    cdef const uint8_t *start
    _skip_space(r)
    if r.at >= r.end:
        return LEFT
    c = r.at[0]
    if c == 34:
        return _copy_string(r)
    if c == 123 or c == 91:
        if level > r.most_levels:
            return LEFT
        return _copy_object(r, level) if c == 123 else _copy_array(r, level)
    if c == 110:
        return _take_word(r, b"null", 4) or _put_bytes(r, <const uint8_t *>b"null", 4)
    if c == 116:
        return _take_word(r, b"true", 4) or _put_bytes(r, <const uint8_t *>b"true", 4)
    if c == 102:
        return _take_word(r, b"false", 5) or _put_bytes(r, <const uint8_t *>b"false", 5)
    if _scan_number(r, &start) == 0:
        return LEFT
    return _put_bytes(r, start, r.at - start)


cdef int _copy_string(Run *r) noexcept nogil:
    cdef const uint8_t *start
    cdef Py_ssize_t place, size
    cdef uint32_t not_ascii
    if _reserve(r, r.end - r.at):
        return LEFT
    r.out[r.size] = 34
    r.at += 1
    start = r.at
    r.at = cdcavro_copy_plain(r.out + r.size + 1, start, r.end, r.end, &not_ascii)
    if r.at >= r.end:
        return LEFT
    if r.at[0] == 34:
        r.at += 1
        r.size += r.at - start + 1
        r.out[r.size - 1] = 34
        return OK
    # The text without escapes goes behind what is written, then quoted to where it belongs.
    r.at = start
    place = r.size
    if _text(r):
        return LEFT
    size = r.size - place
    if _reserve(r, 7 * size + 32):
        return LEFT
    r.size = place + size
    if _put_quoted(r, r.out + place, r.out + place + size, r.out + place + size):
        return LEFT
    memmove(r.out + place, r.out + place + size, r.size - place - size)
    r.size -= size
    return OK


cdef int _copy_object(Run *r, int level) noexcept nogil:
    cdef const uint8_t *start
    cdef Py_ssize_t size
    cdef uint32_t own
    cdef bint first = True
    r.object += 1
    own = r.object
    r.at += 1
    _skip_space(r)
    if r.at < r.end and r.at[0] == 125:
        r.at += 1
        return _put_bytes(r, <const uint8_t *>b"{}", 2)
    if _put(r, 123):
        return LEFT
    while True:
        if not first and _put(r, 44):
            return LEFT
        first = False
        if _take_name(r, &start, &size) or _add_name(r, own, start, size):
            return LEFT
        if _put_quoted(r, start, start + size, start + size) or _put(r, 58) or _copy_json(r, level + 1):
            return LEFT
        _skip_space(r)
        if r.at >= r.end:
            return LEFT
        if r.at[0] == 125:
            r.at += 1
            return _put(r, 125)
        if _take(r, 44):
            return LEFT


cdef int _copy_array(Run *r, int level) noexcept nogil:
    r.at += 1
    _skip_space(r)
    if r.at < r.end and r.at[0] == 93:
        r.at += 1
        return _put_bytes(r, <const uint8_t *>b"[]", 2)
    if _put(r, 91):
        return LEFT
    while True:
        if _copy_json(r, level + 1):
            return LEFT
        _skip_space(r)
        if r.at >= r.end:
            return LEFT
        if r.at[0] == 93:
            r.at += 1
            return _put(r, 93)
        if _take(r, 44) or _put(r, 44):
            return LEFT
