# Places that stand in columns of their own, as a column of the encoded fields of `source`.

cdef int _open_longs(Column *column, values) except -1:
    """Hold the buffers of a column of integers (`Longs`), which are checked again."""
    memset(column, 0, sizeof(Column))
    try:
        PyObject_GetBuffer(values.data, &column.data, PyBUF_SIMPLE)
        if values.validity is not None:
            PyObject_GetBuffer(values.validity, &column.validity, PyBUF_SIMPLE)
            column.has_nulls = True
        column.first, column.count = values.first, values.count
        if column.first < 0 or column.count < 0 or column.data.len // 8 - column.first < column.count:
            raise ValueError("a column with eight bytes for each integer")
        if column.has_nulls and (column.first + column.count + 7) // 8 > column.validity.len:
            raise ValueError("a column with a bit for each value")
    except BaseException:
        _close_column(column)
        raise
    return 0


cdef int _put_told_text(Run *o, const Column *column, Py_ssize_t i) noexcept nogil:
    cdef Given text
    if _given_value(column, i, &text):
        return LEFT
    if text.start == NULL:
        return _put(o, 0)
    return _put(o, 2) or _put_long(o, text.size) or _put_bytes(o, text.start, text.size)


cdef int _put_told_long(Run *o, const Column *column, Py_ssize_t i) noexcept nogil:
    cdef const uint8_t *validity = <const uint8_t *>column.validity.buf
    cdef Py_ssize_t at = column.first + i
    cdef int64_t value
    if column.has_nulls and not validity[at >> 3] >> (at & 7) & 1:
        return _put(o, 0)
    memcpy(&value, <const char *>column.data.buf + 8 * at, 8)
    return _put(o, 2) or _put_long(o, value)


cdef int _put_told(Run *o, const Column *columns, const bint *given, Py_ssize_t count, char *ends) noexcept nogil:
    """Put out the fields of all places, and where each ends, from 0 on."""
    cdef Py_ssize_t i
    cdef int k
    cdef int32_t end = 0
    memcpy(ends, &end, 4)
    for i in range(count):
        for k in range(FIELDS):
            if not given[k]:
                if _put(o, 0):
                    return LEFT
            elif k == TOPIC or k == FILE_:
                if _put_told_text(o, columns + k, i):
                    return LEFT
            elif _put_told_long(o, columns + k, i):
                return LEFT
        if o.size > INT32_MAX:
            return LEFT
        end = <int32_t>o.size
        memcpy(ends + 4 * i + 4, &end, 4)
    return OK


def encode_places(tuple fields not None, Py_ssize_t count):
    """Return places as a column of the encoded fields of `source`: the bytes, and where each ends, from 0 on.

    `fields` are the topic, partition, offset, file and line, each a column of so many values (texts as `Slices`, integers
    as `Longs`), or None if no place has it. Raises `ValueError` for other columns, and for places of more than 2 GiB.
    """
    cdef Column columns[5]
    cdef bint given[5]
    cdef int k, failed
    cdef char *at
    cdef bytes ends
    cdef Run *o
    if len(fields) != FIELDS or not 0 <= count < INT32_MAX:
        raise ValueError("five columns of places")
    ends = PyBytes_FromStringAndSize(NULL, 4 * (count + 1))
    at = PyBytes_AS_STRING(ends)
    o = <Run *>calloc(1, sizeof(Run))
    if o == NULL:
        raise MemoryError
    memset(given, 0, sizeof(given))
    try:
        for k in range(FIELDS):
            if fields[k] is not None:
                _open_column(columns + k, fields[k]) if k == TOPIC or k == FILE_ else _open_longs(columns + k, fields[k])
                given[k] = True
                if columns[k].count != count:
                    raise ValueError("as many values in each column of places")
        with nogil:
            failed = _put_told(o, columns, given, count, at)
        if failed:
            raise ValueError("places whose texts are within their columns, of at most 2 GiB")
        return PyBytes_FromStringAndSize(<const char *>o.out, o.size), ends
    finally:
        for k in range(FIELDS):
            if given[k]:
                _close_column(columns + k)
        _tear_down(o)
