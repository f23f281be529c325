# Payloads to records: Python's own values made of their bytes.

cdef enum:
    MOST_KEPT_NAMES = 512
    LONGEST_KEPT = 64


cdef object _LEFT = object()  # what is returned for a value that is left to the exact way


cdef inline object _take_text(Run *r):
    cdef int64_t size
    cdef const uint8_t *start
    if _read_long(r, &size) or size < 0 or size > r.end - r.at:
        return _LEFT
    start = r.at
    r.at += size
    return PyUnicode_DecodeUTF8(<const char *>start, <Py_ssize_t>size, NULL)


cdef object _take_recurring(Values v, Run *r):
    """Read a name, which the last records are likely to have had as well."""
    cdef const uint8_t *start
    cdef const char *kept
    cdef Py_ssize_t size, length, place
    cdef int64_t stated
    cdef object name
    if _read_long(r, &stated) or stated < 0 or stated > r.end - r.at:
        return _LEFT
    start, size = r.at, <Py_ssize_t>stated
    r.at += size
    if size > LONGEST_KEPT:
        return PyUnicode_DecodeUTF8(<const char *>start, size, NULL)
    place = <Py_ssize_t>(cdcavro_hash(start, size) % MOST_KEPT_NAMES)
    name = <object>PyList_GET_ITEM(v._kept, place)
    if name is not None:
        kept = PyUnicode_AsUTF8AndSize(name, &length)
        if length == size and memcmp(kept, start, size) == 0:
            return name
    name = PyUnicode_DecodeUTF8(<const char *>start, size, NULL)
    v._kept[place] = name
    return name


cdef object _take_number(Run *r):
    cdef const uint8_t *start
    cdef const uint8_t *stop
    cdef const uint8_t *number
    cdef const uint8_t *end = r.end
    cdef object text
    cdef int kind
    cdef Py_ssize_t size
    if _read_text(r, &start, &size):
        return _LEFT
    stop = r.at
    r.at, r.end = start, stop
    kind = _scan_number(r, &number)
    r.end = end
    if kind == 0 or r.at != stop:
        return _LEFT
    text = PyUnicode_DecodeUTF8(<const char *>start, size, NULL)
    return ExactNumber(text)


cdef object _take_json(Run *r, int level):
    cdef const uint8_t *start
    cdef Py_ssize_t size
    cdef object value
    if _read_text(r, &start, &size):
        return _LEFT
    value = parse_quickly(PyBytes_FromStringAndSize(<const char *>start, size), level - 1)
    return value if type(value) is dict or type(value) is list else _LEFT


cdef object _take_column(Run *r, const Instruction *column, int level):
    cdef int index
    cdef int64_t whole
    cdef double real
    if _read_index(r, &index):
        return _LEFT
    if index == column.a[4]:
        return _take_text(r)
    if index == column.a[0]:
        return None
    if index == column.a[2]:
        return _LEFT if _read_long(r, &whole) else whole
    if index == column.a[3]:
        if r.end - r.at < 8:
            return _LEFT
        memcpy(&real, r.at, 8)
        r.at += 8
        return _LEFT if real - real != 0 else real
    if index == column.a[5]:
        return _take_number(r)
    if index == column.a[1]:
        return _take_boolean(r)
    return _take_json(r, level) if index == column.a[6] else _LEFT


cdef inline object _take_boolean(Run *r):
    if r.at >= r.end or r.at[0] > 1:
        return _LEFT
    r.at += 1
    return r.at[-1] == 1


cdef inline int _read_count(Run *r, int64_t *count) noexcept nogil:
    """Read the number of items of the only block; all arrays and maps together have at most one item to a byte."""
    if _read_long(r, count) or count[0] < 0 or count[0] > r.end - r.at or count[0] > r.items_left:
        return LEFT
    if count[0] > r.most_items:
        return LEFT
    r.items_left -= count[0]
    return OK


cdef inline int _read_end(Run *r) noexcept nogil:
    """Read the end of an array or a map; stop at another block."""
    if r.at >= r.end or r.at[0]:
        return LEFT
    r.at += 1
    return OK


cdef object _take_items(Values v, Run *r, int node, int level):
    cdef int64_t count, i
    cdef list items = []
    cdef object item
    if _read_count(r, &count):
        return _LEFT
    for i in range(count):
        item = _take_value(v, r, node, level)
        if item is _LEFT:
            return _LEFT
        items.append(item)
    return _LEFT if count and _read_end(r) else items


cdef int _take_entries(Values v, Run *r, int node, dict entries, object known, int level) except -1:
    """Read a map's entries into a dict that has none of these names; no name may be one that is known."""
    cdef int64_t count, i
    cdef object name, item
    cdef Py_ssize_t size = len(entries)
    if _read_count(r, &count):
        return LEFT
    for i in range(count):
        name = _take_recurring(v, r)
        if name is _LEFT or (known is not None and name in known):
            return LEFT
        item = _take_value(v, r, node, level)
        if item is _LEFT:
            return LEFT
        entries[name] = item
    if len(entries) - size != count or (count and _read_end(r)):
        return LEFT
    return OK


cdef object _take_record(Values v, Run *r, int node, int level):
    cdef const Instruction *record = r.code + node
    cdef const Member *member
    cdef dict members = {}
    cdef object value
    cdef int i, null
    for i in range(record.a[0], record.a[0] + record.a[1]):
        member = r.members + i
        if member.missing == EXTRAS:
            if _read_end(r):
                return _LEFT
            continue
        if member.missing == REST:
            if _take_entries(v, r, r.code[member.node].a[0], members, v._known[node], level + 1):
                return _LEFT
            continue
        null = _null_of(r.code + member.node)
        if null >= 0 and r.at < r.end and r.at[0] == null << 1:
            r.at += 1
            if member.missing == ABSENT:
                continue
            value = None
        else:
            value = _take_value(v, r, member.node, level + 1)
            if value is _LEFT:
                return _LEFT
        members[<object>PyList_GET_ITEM(v._names, i)] = value
    return members


cdef object _take_value(Values v, Run *r, int node, int level):
    """Read one value by the instruction of its type."""
    cdef const Instruction *type = r.code + node
    cdef int64_t whole
    cdef int index
    cdef dict entries
    if type.kind == OPTIONAL:
        if _read_index(r, &index):
            return _LEFT
        if index == type.a[2]:
            return None
        if index != type.a[1]:
            return _LEFT
        node = type.a[0]
        type = r.code + node
    if type.kind == COLUMN:
        return _take_column(r, type, level)
    if type.kind == STRING:
        return _take_text(r)
    if type.kind == LONG or type.kind == INT:
        if _read_long(r, &whole) or (type.kind == INT and not -(<int64_t>1 << 31) <= whole < <int64_t>1 << 31):
            return _LEFT
        return whole
    if type.kind == ENUM:
        if _read_long(r, &whole) or not 0 <= whole < type.a[1]:
            return _LEFT
        return v._symbols[type.a[0] + 2 * <int>whole]
    if type.kind == MAP:
        entries = {}
        return _LEFT if _take_entries(v, r, type.a[0], entries, None, level + 1) else entries
    if type.kind == ARRAY:
        return _take_items(v, r, type.a[0], level + 1)
    if type.kind == RECORD:
        return _take_record(v, r, node, level)
    if type.kind == BOOLEAN:
        return _take_boolean(r)
    if type.kind == VARIANT:
        return _take_variant(r, type)
    return _LEFT


cdef object _take_variant(Run *r, const Instruction *variant):
    cdef int index
    cdef int64_t whole
    if _read_index(r, &index):
        return _LEFT
    if index == variant.a[0]:
        return None
    if index == variant.a[2]:
        if _read_long(r, &whole) or (variant.a[4] and not -(<int64_t>1 << 31) <= whole < <int64_t>1 << 31):
            return _LEFT
        return whole
    if index == variant.a[3]:
        return _take_text(r)
    return _take_boolean(r) if index == variant.a[1] else _LEFT
