# JSON values compared, digit for digit.

cdef bint _are_same(object left, object right, int depth) except -1:
    cdef object name, value
    cdef PyObject *found
    cdef Py_ssize_t i
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if PyUnicode_CheckExact(left):
        return PyObject_RichCompareBool(left, right, Py_EQ)
    if PyDict_CheckExact(left):
        _check_bottom(depth)
        if len(<dict>left) != len(<dict>right):
            return False
        for name, value in (<dict>left).items():
            found = PyDict_GetItemWithError(right, name)
            if found == NULL or not _are_same(value, <object>found, depth + 1):
                return False
        return True
    if PyList_CheckExact(left):
        _check_bottom(depth)
        if PyList_GET_SIZE(left) != PyList_GET_SIZE(right):
            return False
        for i, value in enumerate(<list>left):
            if i >= PyList_GET_SIZE(right) or not _are_same(value, <object>PyList_GET_ITEM(right, i), depth + 1):
                return False
        return True
    if PyFloat_CheckExact(left):
        return PyFloat_AS_DOUBLE(left) == PyFloat_AS_DOUBLE(right) and (
            PyFloat_AS_DOUBLE(left) != 0 or repr(left) == repr(right)
        )
    return PyObject_RichCompareBool(left, right, Py_EQ)


cdef inline int _check_bottom(int depth) except -1:
    # A value that was built rather than parsed may contain itself.
    if depth > MAX_DEPTH:
        raise RecursionError(f"a value of more than {MAX_DEPTH} levels")
    return 0


def same(left, right):
    """Return whether two JSON values are the same, as `cdcavro.exact.diff.same` does."""
    return _are_same(left, right, 0)
