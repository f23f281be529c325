# Columns in Arrow's layout as Python gives them, whose buffers are held while they are read.


cdef struct Column:
    Py_buffer data
    Py_buffer offsets
    Py_buffer validity
    bint has_nulls
    Py_ssize_t first
    Py_ssize_t count

cdef struct ColumnValue:  # the bytes of a value of a column; NULL as their start for a null
    const uint8_t *start
    Py_ssize_t size

cdef const char *NO_BYTES = b""


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


cdef void _close_column(Column *column) noexcept:
    PyBuffer_Release(&column.data)
    PyBuffer_Release(&column.offsets)
    PyBuffer_Release(&column.validity)


cdef int _column_value(const Column *column, Py_ssize_t i, ColumnValue *given) noexcept nogil:
    """Give a value of a column; stop at one that is not within the column's bytes."""
    cdef const char *offsets = <const char *>column.offsets.buf
    cdef const uint8_t *validity = <const uint8_t *>column.validity.buf
    cdef Py_ssize_t at = column.first + i
    cdef int32_t begin, end
    given.start = NULL
    given.size = 0
    if column.has_nulls and not validity[at >> 3] >> (at & 7) & 1:
        return OK
    memcpy(&begin, offsets + 4 * at, 4)
    memcpy(&end, offsets + 4 * at + 4, 4)
    if not 0 <= begin <= end <= column.data.len:
        return LEFT
    # Of a column without bytes, the start may be NULL.
    given.start = <const uint8_t *>column.data.buf + begin if end > begin else <const uint8_t *>NO_BYTES
    given.size = end - begin
    return OK
