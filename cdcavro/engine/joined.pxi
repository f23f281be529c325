# Columns of texts that are JSON objects one after another, as lines of one object each.


cdef Py_ssize_t _put_objects(uint8_t *out, const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Write the objects of a text as lines, and return how many bytes these have; -1 for whatever else is in it.

    Only strings and braces are looked at: an object is checked by whoever reads its line.
    """
    cdef uint8_t *to = out
    cdef const uint8_t *plain
    cdef int depth = 0
    cdef uint8_t byte
    while at < end:
        byte = at[0]
        at += 1
        if depth == 0 and byte != 123:
            if byte == 32 or 9 <= byte <= 10 or byte == 13:
                continue
            return -1
        to[0] = 32 if byte == NEWLINE else byte
        to += 1
        if byte == 123:
            depth += 1
        elif byte == 125:
            depth -= 1
            if depth == 0:
                to[0] = NEWLINE
                to += 1
        while byte == 34:  # up to the quote that ends the string
            plain = cdcavro_plain(at, end, end)
            memcpy(to, at, plain - at)
            to += plain - at
            at = plain
            if at == end or at[0] < 32 or (at[0] == 92 and end - at < 2):
                return -1
            to[0], at = at[0], at + 1
            to += 1
            if (to - 1)[0] == 34:
                break
            to[0], at = at[0], at + 1
            to += 1
            if (to - 1)[0] == NEWLINE:
                return -1
    return to - out if depth == 0 else -1


def split_column(column, Py_ssize_t first, Py_ssize_t base, Py_ssize_t most):
    """Return the objects of a column's texts as lines, and where those of a text end, as `Engine.decode_column` does.

    It stops at a text that is not of objects alone, one after another, and at one that has none.
    """
    cdef Column values
    cdef ColumnValue given
    cdef uint8_t *out = NULL
    cdef uint8_t *wider
    cdef Py_ssize_t i, made, room = 0, size = 0
    ends = array("i")
    _open_column(&values, column)
    try:
        if not 0 <= first <= values.count or not 0 <= base <= most < <Py_ssize_t>1 << 31:
            raise ValueError("the values from an index on, which end within 31 bits")
        for i in range(first, values.count):
            if _column_value(&values, i, &given):
                break
            if given.start != NULL:
                # An object has two bytes at least, and its line one more.
                if room - size < given.size + given.size // 2:
                    room = 2 * (size + given.size) + 4096
                    wider = <uint8_t *>realloc(out, room)
                    if wider == NULL:
                        raise MemoryError
                    out = wider
                with nogil:
                    made = _put_objects(out + size, given.start, given.start + given.size)
                if made <= 0 or size + made > most - base:
                    break
                size += made
            ends.append(base + size)
        return PyBytes_FromStringAndSize(<const char *>out, size), ends.tobytes(), first + len(ends)
    finally:
        free(out)
        _close_column(&values)
