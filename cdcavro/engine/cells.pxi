# Rows of a table to Avro: values as their columns' readers give them, each a branch of a union with null.

cdef enum:  # as in table/rows.py
    LONG_CELL, STRING_CELL, BYTES_CELL, DOUBLE_CELL, SINGLE_CELL, BOOLEAN_CELL


cdef class Cells:
    """The cells of rows that are as they should be; whatever is absent, unknown or a misfit is left to the exact way."""

    cdef list _names, _readers
    cdef bytes _kinds, _branches, _nulls, _end
    cdef bint _is_whole
    cdef object _misfit
    cdef Run *_spare
    cdef Py_ssize_t *_starts  # of the cells of the last row in what is put out

    def __cinit__(self, cells, bytes end, bint is_whole, misfit):
        self._names = [name for name, _, _, _, _ in cells]
        self._readers = [read for _, read, _, _, _ in cells]
        self._kinds = bytes([kind for _, _, kind, _, _ in cells])
        self._branches = bytes([branch for _, _, _, branch, _ in cells])
        self._nulls = bytes([null for _, _, _, _, null in cells])
        self._end, self._is_whole, self._misfit = end, is_whole, misfit
        self._starts = <Py_ssize_t *>calloc(len(self._names) + 1, sizeof(Py_ssize_t))
        self._spare = <Run *>calloc(1, sizeof(Run))
        if self._starts == NULL or self._spare == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._starts)
        _tear_down(self._spare)

    def row(self, image):
        """Return a row, with what stands behind its cells; None where it is left to the exact way."""
        cdef Run *r = self._spare
        if r == NULL:  # another call is under way, in a reader
            return None
        self._spare = NULL
        r.size = 0
        return self._done(r, self._left(r, image, None))

    def rows(self, before, after):
        """Return two rows, each of which may be None, as unions with null that comes first; None as `row`."""
        cdef Run *r = self._spare
        cdef int left
        if r == NULL:
            return None
        self._spare = NULL
        r.size = 0
        left = _put(r, 0) if before is None else _put(r, 2) or self._left(r, before, None)
        if left == OK:
            left = _put(r, 0) if after is None else _put(r, 2) or self._left(r, after, before)
        return self._done(r, left)

    cdef bytes _done(self, Run *r, int left):
        cdef bytes made = PyBytes_FromStringAndSize(<const char *>r.out, r.size) if left == OK else None
        _shrink(r)
        self._spare = r
        return made

    cdef int _left(self, Run *r, object row, object last) noexcept:
        """Put out a row; `last` is the row before, most of whose values are the same objects."""
        try:
            return self._put(r, row, last) or _put_bytes(
                r, <const uint8_t *>PyBytes_AS_STRING(self._end), PyBytes_GET_SIZE(self._end)
            )
        except Exception:
            return LEFT  # which raises it again

    cdef int _put(self, Run *r, object row, object last) except -1:
        cdef const uint8_t *kinds = <const uint8_t *>PyBytes_AS_STRING(self._kinds)
        cdef const uint8_t *branches = <const uint8_t *>PyBytes_AS_STRING(self._branches)
        cdef const uint8_t *nulls = <const uint8_t *>PyBytes_AS_STRING(self._nulls)
        cdef PyObject *found
        cdef PyObject *before = NULL
        cdef Py_ssize_t i, count = 0, start
        cdef object read, value, datum
        if not PyDict_CheckExact(row) or (last is not None and not PyDict_CheckExact(last)):
            return LEFT
        for i in range(PyList_GET_SIZE(self._names)):
            start = r.size
            read = <object>PyList_GET_ITEM(self._readers, i)
            if read is None:  # a column that newer rows no longer have
                if _put(r, nulls[i]):
                    return LEFT
                self._starts[i] = start
                continue
            found = PyDict_GetItemWithError(row, <object>PyList_GET_ITEM(self._names, i))
            if found == NULL:
                return LEFT
            count += 1
            value = <object>found
            if last is not None:
                before = PyDict_GetItemWithError(last, <object>PyList_GET_ITEM(self._names, i))
            if value is None:
                if _put(r, nulls[i]):
                    return LEFT
            elif found == before:
                if _put_again(r, self._starts[i], self._starts[i + 1]):
                    return LEFT
            else:
                datum = read(value)
                if datum is None:
                    if _put(r, nulls[i]):
                        return LEFT
                elif datum is self._misfit or _put(r, branches[i]) or _put_datum(r, kinds[i], datum):
                    return LEFT
            self._starts[i] = start
        self._starts[PyList_GET_SIZE(self._names)] = r.size
        return LEFT if self._is_whole and count != len(<dict>row) else OK


cdef inline int _put_again(Run *r, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    if _reserve(r, stop - start):
        return LEFT
    memcpy(r.out + r.size, r.out + start, stop - start)
    r.size += stop - start
    return OK


cdef int _put_datum(Run *r, int kind, object datum) except -1:
    cdef double real
    cdef float single
    if kind == LONG_CELL:
        return _put_whole(r, datum, False)
    if kind == STRING_CELL:
        return _add_text(r, datum)
    if kind == BYTES_CELL:
        if not PyBytes_CheckExact(datum) or _put_long(r, PyBytes_GET_SIZE(datum)):
            return LEFT
        return _put_bytes(r, <const uint8_t *>PyBytes_AS_STRING(datum), PyBytes_GET_SIZE(datum))
    if kind == BOOLEAN_CELL:
        return _put_boolean(r, datum)
    if not PyFloat_CheckExact(datum):
        return LEFT
    real = PyFloat_AS_DOUBLE(datum)
    if kind == DOUBLE_CELL:
        return _put_bytes(r, <const uint8_t *>&real, 8)
    single = <float>real
    return LEFT if single != real else _put_bytes(r, <const uint8_t *>&single, 4)


cdef Run *_spare_of_optionals = NULL


def optionals(tuple values not None, str kinds not None):
    """Return values, each a union of null, which comes first, and what `kinds` says; None where one does not fit.

    The kinds are `l`, a long; `s`, a string; `a`, an array of longs, from a tuple.
    """
    global _spare_of_optionals
    cdef Run *r = _spare_of_optionals
    cdef object value
    cdef Py_UCS4 kind
    cdef int left = OK
    cdef bytes made = None
    if len(kinds) != len(values):
        raise ValueError("a kind for each value")
    _spare_of_optionals = NULL
    if r == NULL:
        r = <Run *>calloc(1, sizeof(Run))
        if r == NULL:
            raise MemoryError
    r.size = 0
    try:
        for value, kind in zip(values, kinds):
            left = _put_optional(r, value, kind)
            if left:
                break
        if left == OK:
            made = PyBytes_FromStringAndSize(<const char *>r.out, r.size)
    finally:
        if _spare_of_optionals == NULL:
            _shrink(r)
            _spare_of_optionals = r
        else:
            _tear_down(r)
    return made


cdef int _put_optional(Run *r, object value, Py_UCS4 kind) except -1:
    cdef object number
    if value is None:
        return _put(r, 0)
    if _put(r, 2):
        return LEFT
    if kind == c"s":
        return _add_text(r, value)
    if kind == c"l":
        return _put_whole(r, value, False)
    if not PyTuple_CheckExact(value):
        return LEFT
    if len(<tuple>value):
        if _put_long(r, len(<tuple>value)):
            return LEFT
        for number in <tuple>value:
            if _put_whole(r, number, False):
                return LEFT
    return _put(r, 0)
