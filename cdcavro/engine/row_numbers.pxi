# Rows of texts that are numbers: read as numbers in place, and back.

cdef object _number_of(Run *r, object text, bint is_whole):
    """Return the number that a text is, None for another text."""
    cdef Py_ssize_t size
    cdef const uint8_t *start
    cdef const uint8_t *number
    cdef int64_t whole
    cdef double real
    cdef int kind
    if not PyUnicode_IS_ASCII(text):
        return None
    start = <const uint8_t *>PyUnicode_AsUTF8AndSize(text, &size)
    r.at, r.end = start, start + size
    kind = _scan_number(r, &number)
    if kind == 0 or r.at != r.end:
        return None
    if kind == INTEGER:
        return whole if _as_long(start, r.end, &whole) else ExactNumber(text)
    if is_whole and (kind == FRACTION or size != 2):  # other than -0
        return None
    return real if kind == FRACTION and _as_double(start, r.end, &real) else ExactNumber(text)


def read_numbers(dict row not None, dict kinds not None):
    """Put numbers in place of the texts of columns that are numbers; `kinds` says of each whether it is a whole number."""
    cdef Run r
    cdef object name, value, number
    cdef PyObject *kind
    r.odd = False
    for name, value in row.items():
        if PyUnicode_CheckExact(value):
            kind = PyDict_GetItemWithError(kinds, name)
            if kind != NULL:
                number = _number_of(&r, value, <object>kind is True)
                if number is not None:
                    row[name] = number


def write_numbers(dict row not None):
    """Put texts in place of numbers; return whether every value is now a text or null."""
    cdef object name, value
    cdef bint all = True
    for name, value in row.items():
        if value is None or PyUnicode_CheckExact(value):
            continue
        if PyLong_CheckExact(value) or PyFloat_CheckExact(value):
            row[name] = repr(value)
        elif type(value) is ExactNumber:
            row[name] = value.text
        else:
            all = False
    return all
