# Python's own values: records read from payloads and written to them, texts of rows read as numbers, values compared,
# and the cells of rows.


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


cdef int _put_entries(
    Values v, Run *r, int node, object entries, Py_ssize_t count, object skipped, int level
) except -1:
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
        if not PyDict_CheckExact(value):
            return LEFT
        return _put_entries(v, r, type.a[0], value, len(<dict>value), None, level + 1)
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
    return exact_number(text)


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
    return _LEFT if _skip_boolean(r) else (r.at - 1)[0] == 1


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


# Records of Python's own values, to payloads and back; what has to be noted in the extras is left to the exact way.

cdef class Values:
    """The engine of one program for records: dicts, lists and scalars. Several threads may use it."""

    cdef Run *_spare
    cdef bytes _code
    cdef bytes _fields
    cdef bytes _places
    cdef bytes _texts
    cdef int _root
    cdef int64_t _items
    cdef list _names  # of members, by the numbers of their rows
    cdef list _symbols  # by where they stand in the program's
    cdef dict _known  # for a record with a rest, the names of its members
    cdef dict _structs  # of which records are written, and the nodes of these
    cdef dict _tuples  # that were written, by identity, and their bytes
    cdef list _kept  # names of columns and the like, which recur

    def __cinit__(self, program):
        cdef const Instruction *code
        cdef const Member *member
        cdef const int32_t *places
        cdef Py_ssize_t i
        cdef int j
        self._code, self._fields = program.code.tobytes(), program.fields.tobytes()
        self._places, self._texts = program.symbols.tobytes(), program.texts + bytes(SLACK)
        self._root, self._items = program.root, program.bounds[1]
        self._kept = [None] * MOST_KEPT_NAMES
        self._names, self._symbols, self._known = [], [None] * len(program.symbols), {}
        self._structs, self._tuples = {}, {}
        member = <const Member *>PyBytes_AS_STRING(self._fields)
        for i in range(len(self._fields) // sizeof(Member)):
            self._names.append(intern(self._texts[member[i].label + 1 : member[i].label + member[i].size - 2].decode()))
        code = <const Instruction *>PyBytes_AS_STRING(self._code)
        places = <const int32_t *>PyBytes_AS_STRING(self._places)
        for i in range(len(self._code) // sizeof(Instruction)):
            if code[i].kind == ENUM:
                for j in range(code[i].a[0], code[i].a[0] + 2 * code[i].a[1], 2):
                    self._symbols[j] = self._texts[places[j] + 1 : places[j] + places[j + 1] - 1].decode()
            elif code[i].kind == RECORD and code[i].a[2] >= 0:
                self._known[i] = frozenset(
                    self._names[j] for j in range(code[i].a[0], code[i].a[0] + code[i].a[1]) if member[j].size
                )

    def __dealloc__(self):
        _tear_down(self._spare)

    cdef bint _is_shaped(self, int node, object struct) except -1:
        """Return whether a Struct has the fields that a record has as members, and no others."""
        cdef const Instruction *record = <const Instruction *>PyBytes_AS_STRING(self._code) + node
        cdef const Member *member = <const Member *>PyBytes_AS_STRING(self._fields)
        cdef int i
        names = {self._names[i] for i in range(record.a[0], record.a[0] + record.a[1]) if member[i].missing != EXTRAS}
        return record.a[2] < 0 and names == set(struct.__struct_fields__)

    def write(self, record):
        """Return a record as a payload; None where it is left to the exact way, as whatever is faulty is."""
        return self._write_record(record, False)

    def write_struct(self, struct):
        """Return a frozen Struct of the record's fields as a payload, None as `write`.

        A field that is None stands for no member, a tuple for a list, and another Struct for its record.
        """
        return self._write_record(struct, True)

    cdef bytes _write_record(self, object record, bint is_struct):
        cdef Run *r
        cdef bytes payload = None
        cdef int left
        if self._root < 0:
            return None
        r = self._borrow_run()
        try:
            if is_struct:
                left = _put_struct(self, r, self._root, record, 1)
            else:
                left = _put_record(self, r, self._root, record, 1)
            if left == OK and _put(r, 0) == OK:
                payload = PyBytes_FromStringAndSize(<const char *>r.out, r.size)
        except (MessageError, UnicodeError, RecursionError):
            pass
        finally:
            self._return_run(r)
        return payload

    def read(self, bytes raw, Py_ssize_t position=0):
        """Return the record of the payload at a position, and the position after it; None where it is left."""
        cdef Run *r
        cdef object record = _LEFT
        if not 0 <= position <= PyBytes_GET_SIZE(raw):
            raise ValueError("the payload at a position")
        if self._root < 0:
            return None
        r = self._borrow_run()
        r.at, r.end = _start(raw) + position, _start(raw) + PyBytes_GET_SIZE(raw)
        r.items_left = r.end - r.at
        try:
            record = _take_record(self, r, self._root, 1)
            position = r.at - _start(raw)
        except (MessageError, UnicodeError, RecursionError):
            pass
        finally:
            self._return_run(r)
        return None if record is _LEFT else (record, position)

    cdef Run *_borrow_run(self) except NULL:
        """Return the state of a run that nobody else uses."""
        cdef Run *r = self._spare
        self._spare = NULL
        if r == NULL:
            r = <Run *>calloc(1, sizeof(Run))
            if r == NULL:
                raise MemoryError
            r.code = <const Instruction *>PyBytes_AS_STRING(self._code)
            r.members = <const Member *>PyBytes_AS_STRING(self._fields)
            r.symbols = <const int32_t *>PyBytes_AS_STRING(self._places)
            r.texts = <const uint8_t *>PyBytes_AS_STRING(self._texts)
            r.most_items = self._items
        r.size = 0
        return r

    cdef void _return_run(self, Run *r) noexcept:
        if self._spare != NULL or r.room > KEPT:
            _tear_down(r)
        else:
            self._spare = r


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
        return whole if _as_long(start, r.end, &whole) else exact_number(text)
    if is_whole and (kind == FRACTION or size != 2):  # other than -0
        return None
    return real if kind == FRACTION and _as_double(start, r.end, &real) else exact_number(text)


def read_numbers(dict row not None, dict kinds not None):
    """Put numbers in place of the texts of columns that are numbers; `kinds` says of each whether it is whole."""
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
    if type(left) is ExactNumber:
        return PyObject_RichCompareBool(left.text, right.text, Py_EQ)
    return PyObject_RichCompareBool(left, right, Py_EQ)


cdef inline int _check_bottom(int depth) except -1:
    # A value that was built rather than parsed may contain itself.
    if depth > MAX_DEPTH:
        raise RecursionError(f"a value of more than {MAX_DEPTH} levels")
    return 0


def same(left, right):
    """Return whether two JSON values are the same, as `cdcavro.exact.jsontext.same` does."""
    return _are_same(left, right, 0)


cdef int _find_differences(object left, object right, list path, list found, int depth) except -1:
    """Add what differs at a path, which is spelled out for differences only."""
    cdef object name, value
    cdef str above = None
    cdef PyObject *other
    cdef Py_ssize_t i
    if left is right:
        return 0
    if PyDict_CheckExact(left) and PyDict_CheckExact(right):
        _check_bottom(depth)
        for name, value in (<dict>left).items():
            other = PyDict_GetItemWithError(right, name)
            if other != NULL:
                if <PyObject *>value == other:
                    continue
                if type(value) is type(<object>other) and (PyDict_CheckExact(value) or PyList_CheckExact(value)):
                    path.append(name)
                    _find_differences(value, <object>other, path, found, depth + 1)
                    path.pop()
                    continue
                if _are_same(value, <object>other, 0):
                    continue
            if above is None:
                above = _pointer(path)
            found.append((_below(above, name), value, ABSENT_MEMBER if other == NULL else <object>other))
        for name, value in (<dict>right).items():
            if name not in <dict>left:
                if above is None:
                    above = _pointer(path)
                found.append((_below(above, name), ABSENT_MEMBER, value))
    elif PyList_CheckExact(left) and PyList_CheckExact(right) and PyList_GET_SIZE(left) == PyList_GET_SIZE(right):
        _check_bottom(depth)
        for i in range(PyList_GET_SIZE(left)):
            path.append(i)
            _find_differences((<list>left)[i], (<list>right)[i], path, found, depth + 1)
            path.pop()
    elif not _are_same(left, right, 0):
        found.append((_pointer(path), left, right))
    return 0


cdef str _pointer(list path):
    """Return the JSON pointer of a path, whose first item is its beginning."""
    cdef str pointer = path[0]
    cdef object name
    for name in path[1:]:
        pointer = _below(pointer, name)
    return pointer


cdef inline str _below(str above, object name):
    if not PyUnicode_CheckExact(name):
        return f"{above}/{name}"
    if "~" in <str>name or "/" in <str>name:
        name = escape(name)
    return f"{above}/{name}"


def differences(left, right, pointer=""):
    """Return what `cdcavro.exact.jsontext.differences` yields for two JSON values."""
    cdef list found = []
    _find_differences(left, right, [pointer], found, 0)
    return found


# Rows of a table to Avro: values as their columns' readers give them, each a branch of a union with null.

cdef enum:  # CellKind: as `_KINDS` in `table/writing/table_writer.py` has it
    CELL_LONG, CELL_STRING, CELL_BYTES, CELL_DOUBLE, CELL_SINGLE, CELL_BOOLEAN


cdef class Cells:
    """The cells of rows that are as they should be; what is absent, unknown or a misfit is left to the exact way."""

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
            if found == before and value is not None:
                if _put_again(r, self._starts[i], self._starts[i + 1]):
                    return LEFT
            else:
                datum = None if value is None else read(value)
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
    if kind == CELL_LONG:
        return _put_whole(r, datum, False)
    if kind == CELL_STRING:
        return _add_text(r, datum)
    if kind == CELL_BYTES:
        if not PyBytes_CheckExact(datum) or _put_long(r, PyBytes_GET_SIZE(datum)):
            return LEFT
        return _put_bytes(r, <const uint8_t *>PyBytes_AS_STRING(datum), PyBytes_GET_SIZE(datum))
    if kind == CELL_BOOLEAN:
        return _put_boolean(r, datum)
    if not PyFloat_CheckExact(datum):
        return LEFT
    real = PyFloat_AS_DOUBLE(datum)
    if kind == CELL_DOUBLE:
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
