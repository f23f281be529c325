# Batches: lines of text, the payloads of a block, and the values of a column in Arrow's layout.

cdef struct Column:
    Py_buffer data
    Py_buffer offsets
    Py_buffer validity
    bint has_nulls
    Py_ssize_t first
    Py_ssize_t count


cdef Py_ssize_t _write_lines(Run *r, const uint8_t *start, Py_ssize_t size, Py_ssize_t *position) noexcept nogil:
    """Append the payloads of lines; return their number."""
    cdef const uint8_t *line
    cdef const uint8_t *end
    cdef Py_ssize_t count = 0, kept
    while True:
        line = start + position[0]
        end = <const uint8_t *>memchr(line, NEWLINE, size - position[0])
        if end == NULL:
            return count
        kept = r.size
        if _write_message(r, r.root, line, end - line):
            r.size = kept
            return count
        position[0] = end + 1 - start
        count += 1


cdef Py_ssize_t _render_lines(
    Run *r, const uint8_t *start, Py_ssize_t size, Py_ssize_t *position, Py_ssize_t count, Py_ssize_t most
) noexcept nogil:
    """Append payloads as lines; return their number."""
    cdef Py_ssize_t done = 0, kept
    while done < count and r.size < most:
        kept = r.size
        if _render_message(r, r.root, start + position[0], size - position[0]) or _put(r, NEWLINE):
            r.size = kept
            break
        position[0] = r.at - start
        done += 1
    return done


cdef int _open_column(Column *column, values) except -1:
    """Hold the buffers of a column (`Slices`), which are checked again: no byte is read outside of them."""
    memset(column, 0, sizeof(Column))
    try:
        PyObject_GetBuffer(values.data, &column.data, PyBUF_SIMPLE)
        PyObject_GetBuffer(values.offsets, &column.offsets, PyBUF_SIMPLE)
        if values.validity is not None:
            PyObject_GetBuffer(values.validity, &column.validity, PyBUF_SIMPLE)
            column.has_nulls = True
        column.first, column.count = values.first, values.count
        if column.first < 0 or column.count < 0 or column.offsets.len // 4 - column.first <= column.count:
            raise ValueError("a column with an offset at each end of its values")
        if column.has_nulls and (column.first + column.count + 7) // 8 > column.validity.len:
            raise ValueError("a column with a bit for each value")
    except BaseException:
        _close_column(column)
        raise
    return 0


cdef void _close_column(Column *column) noexcept:
    PyBuffer_Release(&column.data)
    PyBuffer_Release(&column.offsets)
    PyBuffer_Release(&column.validity)


cdef int _convert_value(Run *r, bint writes, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    if writes:
        return _write_message(r, r.root, start, size)
    if _render_message(r, r.root, start, size) or r.at != r.end:
        return LEFT
    return OK


cdef Py_ssize_t _convert_column(
    Run *r, bint writes, const Column *column, Py_ssize_t first, Py_ssize_t base, Py_ssize_t most
) noexcept nogil:
    """Append what the values of a column become, from an index on, and say where each ends; return their number."""
    cdef const uint8_t *data = <const uint8_t *>column.data.buf
    cdef const char *offsets = <const char *>column.offsets.buf
    cdef const uint8_t *validity = <const uint8_t *>column.validity.buf
    cdef Py_ssize_t i, at, kept
    cdef int32_t begin, end
    cdef int32_t *ends
    if r.ends_room < column.count - first:
        ends = <int32_t *>realloc(r.ends, (column.count - first) * sizeof(int32_t))
        if ends == NULL:
            return 0
        r.ends, r.ends_room = ends, column.count - first
    for i in range(column.count - first):
        at = column.first + first + i
        if not column.has_nulls or validity[at >> 3] >> (at & 7) & 1:
            memcpy(&begin, offsets + 4 * at, 4)
            memcpy(&end, offsets + 4 * at + 4, 4)
            if not 0 <= begin <= end <= column.data.len:
                return i
            kept = r.size
            if _convert_value(r, writes, data + begin, end - begin) or r.size > most - base:
                r.size = kept
                return i
        r.ends[i] = <int32_t>(base + r.size)
    return column.count - first
