# Records to payloads: Python's own values put out; what would have to be noted is left.

cdef enum:
    LONGEST_TUPLE = 1 << 16  # bytes that are kept, and of how many tuples
    MOST_TUPLES = 256

cdef class Values


cdef inline int _add_text(Run *r, object text) except -1:
    cdef Py_ssize_t size
    cdef const char *start
    if not PyUnicode_CheckExact(text):
        return LEFT
    start = PyUnicode_AsUTF8AndSize(text, &size)
    if _reserve(r, size + VARINT):
        return LEFT
    r.size += cdcavro_varint(r.out + r.size, <uint64_t>size << 1)
    memcpy(r.out + r.size, start, size)
    r.size += size
    return OK


cdef inline int _put_whole(Run *r, object value, bint is_int) except -1:
    cdef int overflow
    cdef int64_t whole
    if not PyLong_CheckExact(value):
        return LEFT
    whole = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or (is_int and not -(<int64_t>1 << 31) <= whole < <int64_t>1 << 31):
        return LEFT
    return _put_long(r, whole)


cdef inline int _put_boolean(Run *r, object value) except -1:
    if value is True:
        return _put(r, 1)
    return _put(r, 0) if value is False else LEFT


cdef int _put_column(Run *r, const Instruction *column, object value, int level) except -1:
    cdef int overflow
    cdef int64_t whole
    cdef double real
    if PyUnicode_CheckExact(value):
        return _put(r, column.a[4] << 1) or _add_text(r, value)
    if value is None:
        return _put(r, column.a[0] << 1)
    if PyLong_CheckExact(value):
        whole = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow:
            return _put(r, column.a[5] << 1) or _add_text(r, plain_text(value))
        return _put(r, column.a[2] << 1) or _put_long(r, whole)
    if PyFloat_CheckExact(value):
        real = value
        if real - real != 0:  # not finite
            return LEFT
        return _put(r, column.a[3] << 1) or _put_bytes(r, <const uint8_t *>&real, 8)
    if value is True or value is False:
        return _put(r, column.a[1] << 1) or _put(r, value is True)
    if type(value) is ExactNumber:
        return _put(r, column.a[5] << 1) or _add_text(r, value.text)
    if PyDict_CheckExact(value) or PyList_CheckExact(value):
        check_value(value, level)
        return _put(r, column.a[6] << 1) or _add_text(r, render(value).decode())
    return LEFT


cdef int _add_symbol(Run *r, const Instruction *symbols, object value) except -1:
    cdef Py_ssize_t size
    cdef const char *start
    cdef const int32_t *symbol = r.symbols + symbols.a[0]
    cdef int i
    if not PyUnicode_CheckExact(value):
        return LEFT
    start = PyUnicode_AsUTF8AndSize(value, &size)
    for i in range(symbols.a[1]):
        if symbol[1] == size + 2 and i != symbols.a[2] and memcmp(start, r.texts + symbol[0] + 1, size) == 0:
            return _put_long(r, i)
        symbol += 2
    return LEFT


cdef int _put_items(Values v, Run *r, int node, object items, int level) except -1:
    cdef object item
    if not PyList_CheckExact(items) or PyList_GET_SIZE(items) > r.most_items:
        return LEFT
    if PyList_GET_SIZE(items):
        if _put_long(r, PyList_GET_SIZE(items)):
            return LEFT
        for item in <list>items:
            if _add_value(v, r, node, item, level):
                return LEFT
    return _put(r, 0)


cdef int _put_entries(Values v, Run *r, int node, object entries, Py_ssize_t count, object skipped, int level) except -1:
    cdef object name, item
    if count > r.most_items:
        return LEFT
    if count:
        if _put_long(r, count):
            return LEFT
        for name, item in (<dict>entries).items():
            if skipped is not None and name in skipped:
                continue
            if _add_text(r, name) or _add_value(v, r, node, item, level):
                return LEFT
    return _put(r, 0)


cdef int _put_record(Values v, Run *r, int node, object value, int level) except -1:
    cdef const Instruction *record = r.code + node
    cdef const Member *member
    cdef Py_ssize_t present = 0
    cdef PyObject *found
    cdef object item
    cdef int i, null
    if not PyDict_CheckExact(value) or (record.a[3] and "value" in <dict>value):
        return LEFT
    for i in range(record.a[0], record.a[0] + record.a[1]):
        member = r.members + i
        if member.missing == EXTRAS:
            continue
        if member.missing == REST:
            if _put_entries(
                v, r, r.code[member.node].a[0], value, len(<dict>value) - present, v._known[node], level + 1
            ):
                return LEFT
            continue
        found = PyDict_GetItemWithError(value, <object>PyList_GET_ITEM(v._names, i))
        if found != NULL and <object>found is not None:
            item = <object>found
            present += 1
            if _add_value(v, r, member.node, item, level + 1):
                return LEFT
            continue
        # What departs from the convention is noted.
        if member.missing != (ABSENT if found == NULL else NULL_):
            return LEFT
        present += found != NULL
        null = _null_of(r.code + member.node)
        if null < 0 or _put(r, null << 1):
            return LEFT
    return OK if record.a[2] >= 0 or present == len(<dict>value) else LEFT


cdef int _put_struct(Values v, Run *r, int node, object value, int level) except -1:
    """Write the record that a Struct stands for: a field that is None stands for no member."""
    cdef const Instruction *record = r.code + node
    cdef const Member *member
    cdef object item
    cdef int i, null
    if record.kind != RECORD:
        return LEFT
    if v._structs.get(type(value)) != node:
        if not v._is_shaped(node, type(value)):
            return LEFT
        v._structs[type(value)] = node
    for i in range(record.a[0], record.a[0] + record.a[1]):
        member = r.members + i
        if member.missing == EXTRAS:
            continue
        item = PyObject_GetAttr(value, <object>PyList_GET_ITEM(v._names, i))
        if item is not None:
            if _put_field(v, r, member.node, item, level + 1):
                return LEFT
            continue
        null = _null_of(r.code + member.node)
        if member.missing != ABSENT or null < 0 or _put(r, null << 1):
            return LEFT
    return OK


cdef int _put_field(Values v, Run *r, int node, object value, int level) except -1:
    """Write what a Struct holds, a tuple and another Struct included."""
    cdef const Instruction *type = r.code + node
    cdef bint is_tuple
    if PyUnicode_CheckExact(value) or PyLong_CheckExact(value):
        return _add_value(v, r, node, value, level)
    if PyDict_CheckExact(value) and (r.code + type.a[0] if type.kind == OPTIONAL else type).kind == RECORD:
        return LEFT
    is_tuple = PyTuple_CheckExact(value)
    if not is_tuple and not isinstance(value, Struct):
        return _add_value(v, r, node, value, level)
    if type.kind == OPTIONAL:
        if _put(r, type.a[1] << 1):
            return LEFT
        node = type.a[0]
    return _put_tuple(v, r, node, value, level) if is_tuple else _put_struct(v, r, node, value, level)


cdef int _put_tuple(Values v, Run *r, int node, tuple items, int level) except -1:
    """Write a tuple as a list; that of a table's columns is the same one in all its changes."""
    cdef Py_ssize_t start = r.size
    cdef object item
    cdef tuple kept = v._tuples.get(id(items))
    cdef bytes written
    if r.code[node].kind != ARRAY or len(items) > r.most_items:
        return LEFT
    if kept is not None and kept[0] is items and kept[1] == node:
        written = kept[2]
        return _put_bytes(r, <const uint8_t *>PyBytes_AS_STRING(written), PyBytes_GET_SIZE(written))
    if len(items):
        if _put_long(r, len(items)):
            return LEFT
        for item in items:
            if _put_field(v, r, r.code[node].a[0], item, level + 1):
                return LEFT
    if _put(r, 0):
        return LEFT
    if r.size - start <= LONGEST_TUPLE and len(items) and isinstance(items[0], Struct):
        if len(v._tuples) >= MOST_TUPLES:
            v._tuples.clear()
        written = PyBytes_FromStringAndSize(<const char *>r.out + start, r.size - start)
        v._tuples[id(items)] = (items, node, written)
    return OK


cdef int _add_value(Values v, Run *r, int node, object value, int level) except -1:
    """Write one value by the instruction of its type."""
    cdef const Instruction *type = r.code + node
    if type.kind == OPTIONAL:
        if value is None:
            return _put(r, type.a[2] << 1)
        if (type.a[3] and PyUnicode_CheckExact(value)) or _put(r, type.a[1] << 1):
            return LEFT
        node = type.a[0]
        type = r.code + node
    if type.kind == COLUMN:
        return _put_column(r, type, value, level)
    if type.kind == STRING:
        return _add_text(r, value)
    if type.kind == LONG or type.kind == INT:
        return _put_whole(r, value, type.kind == INT)
    if type.kind == ENUM:
        return _add_symbol(r, type, value)
    if type.kind == MAP:
        return _put_entries(v, r, type.a[0], value, len(<dict>value), None, level + 1) if PyDict_CheckExact(value) else LEFT
    if type.kind == ARRAY:
        return _put_items(v, r, type.a[0], value, level + 1)
    if type.kind == RECORD:
        return _put_record(v, r, node, value, level)
    if type.kind == BOOLEAN:
        return _put_boolean(r, value)
    if type.kind == VARIANT:
        if value is None:
            return _put(r, type.a[0] << 1)
        if PyUnicode_CheckExact(value):
            return LEFT if type.a[3] < 0 else _put(r, type.a[3] << 1) or _add_text(r, value)
        if PyLong_CheckExact(value):
            return LEFT if type.a[2] < 0 else _put(r, type.a[2] << 1) or _put_whole(r, value, type.a[4])
        return LEFT if type.a[1] < 0 else _put(r, type.a[1] << 1) or _put_boolean(r, value)
    return LEFT
