# Any JSON value put out in its compact form.

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
