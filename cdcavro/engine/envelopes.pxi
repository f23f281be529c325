# Envelopes that Kafka Connect's Avro has, as payloads of a wire schema: those that their texts would become.
#
# Fields become members or columns in the order in which they come; what the program does not turn by its type becomes
# its text, and this what it is in a message.

cdef struct Passage:  # what becomes of a field
    int32_t node  # of its type
    int32_t target  # the member that it is, -1 for one that the record does not name
    int32_t label  # where its name stands, of a column with its length before it
    int32_t size
    int32_t first  # the passages of its own fields, if it becomes a record or a row
    int32_t count  # -1 for any other
    int32_t spare[2]

cdef struct Envelope:  # what is on its way from a converter's payload to one of a wire schema
    Run *source
    Run *made
    const Passage *passages
    const uint8_t *texts
    Py_ssize_t shown  # bytes of the texts of values


cdef int _show(Envelope *e, int node, int level) noexcept nogil:
    """Read a value as its text, from which it is to be written."""
    cdef Run *s = e.source
    s.size = 0
    if _render(s, node, level):
        return LEFT
    e.made.at, e.made.end = s.out, s.out + s.size
    e.shown += s.size
    return OK


cdef inline int _pass_branch(Run *s, const Passage *p, const Instruction **type, bint *is_null) noexcept nogil:
    """Read which branch a field has, and give the type of its value."""
    cdef int index
    type[0] = s.code + p.node
    is_null[0] = False
    if type[0].kind != OPTIONAL:
        return OK
    if _read_index(s, &index) or (index != type[0].a[1] and index != type[0].a[2]):
        return LEFT
    is_null[0] = index == type[0].a[2]
    type[0] = s.code + type[0].a[0]
    return OK


cdef inline int _copy_text(Envelope *e, int branch) noexcept nogil:
    """Write a string as it is, in a branch of a union if that is none of -1."""
    cdef Run *s = e.source
    cdef const uint8_t *begin = s.at
    cdef const uint8_t *start
    cdef Py_ssize_t size
    if (branch >= 0 and _put(e.made, <uint8_t>(branch << 1))) or _read_text(s, &start, &size):
        return LEFT
    return _put_few(e.made, begin, s.at - begin, s.end)


cdef inline int _copy_long(Envelope *e, bint is_int, int branch) noexcept nogil:
    """Write an integer as it is, in a branch of a union if that is none of -1."""
    cdef Run *s = e.source
    cdef const uint8_t *begin = s.at
    cdef int64_t value
    if (branch >= 0 and _put(e.made, <uint8_t>(branch << 1))) or _read_long(s, &value):
        return LEFT
    if is_int and not -(<int64_t>1 << 31) <= value < <int64_t>1 << 31:
        return LEFT
    return _put_few(e.made, begin, s.at - begin, s.end)


cdef int _carry_double(Envelope *e, const Instruction *column) noexcept nogil:
    """Write a double whose text is plain; say that it ended before any other, which is yet to be read."""
    cdef Run *s = e.source
    cdef double value
    if s.end - s.at < 8:
        return LEFT
    memcpy(&value, s.at, 8)
    if not (0.001 <= value < 1e7 or 0.001 <= -value < 1e7 or value == 0):
        return ENDED
    if _put(e.made, <uint8_t>(column.a[3] << 1)) or _put_bytes(e.made, s.at, 8):
        return LEFT
    s.at += 8
    return OK


cdef int _carry_column(Envelope *e, const Passage *p, const Instruction *column, int level) noexcept nogil:
    """Write the value of a column."""
    cdef const Instruction *type
    cdef bint is_null
    cdef int done
    if _pass_branch(e.source, p, &type, &is_null):
        return LEFT
    if is_null:
        return _put(e.made, <uint8_t>(column.a[0] << 1))
    if type.kind == STRING:
        return _copy_text(e, column.a[4])
    if type.kind == LONG or type.kind == INT:
        return _copy_long(e, type.kind == INT, column.a[2])
    if type.kind == DOUBLE:
        done = _carry_double(e, column)
        if done != ENDED:
            return done
    if _show(e, <int>(type - e.source.code), level) or _write_column(e.made, column, level):
        return LEFT
    return LEFT if e.made.at != e.made.end else OK


cdef int _carry_row(Envelope *e, const Passage *p, const Instruction *map, int level) noexcept nogil:
    """Write the columns of a row."""
    cdef const Passage *field = e.passages + p.first
    cdef const Passage *end = field + p.count
    if level > e.made.most_levels or p.count > e.made.most_items or (p.count and _put_long(e.made, p.count)):
        return LEFT
    while field < end:
        if _put_few(e.made, e.texts + field.label, field.size, e.texts + field.label + field.size + SLACK):
            return LEFT
        if _carry_column(e, field, e.made.code + map.a[0], level + 1):
            return LEFT
        field += 1
    return _put(e.made, 0)


cdef int _carry_symbol(Envelope *e, const Instruction *symbols, bint *is_found) noexcept nogil:
    """Write a string that is a symbol as that, and say whether it is one."""
    cdef Run *r = e.made
    cdef Run *s = e.source
    cdef const uint8_t *begin = s.at
    cdef const uint8_t *start
    cdef const int32_t *symbol = r.symbols + symbols.a[0]
    cdef Py_ssize_t size
    cdef int i
    if _read_text(s, &start, &size):
        return LEFT
    for i in range(symbols.a[1]):
        # It stands there with its quotation marks.
        if symbol[1] == size + 2 and i != symbols.a[2] and memcmp(r.texts + symbol[0] + 1, start, size) == 0:
            is_found[0] = True
            return _put_long(r, i)
        symbol += 2
    is_found[0] = False
    s.at = begin
    return OK


cdef int _carry_scalar(
    Envelope *e, const Instruction *type, const Instruction *into, bint *is_done
) noexcept nogil:
    """Write a value whose type is that of its member, or a symbol, and say whether it is one."""
    cdef bint is_whole = type.kind == LONG or type.kind == INT
    cdef int branch = -1
    is_done[0] = True
    if into.kind == VARIANT:
        branch = into.a[3] if type.kind == STRING else into.a[2]
        is_done[0] = branch >= 0 and (type.kind == STRING or (is_whole and not into.a[4]))
    else:
        if into.kind == OPTIONAL:
            branch, into = into.a[1], e.made.code + into.a[0]
        if into.kind == ENUM and type.kind == STRING:
            return (branch >= 0 and _put(e.made, <uint8_t>(branch << 1))) or _carry_symbol(e, into, is_done)
        is_done[0] = into.kind == type.kind or (into.kind == LONG and is_whole)
    if is_done[0] and type.kind == STRING:
        return _copy_text(e, branch)
    is_done[0] = is_done[0] and is_whole
    return _copy_long(e, type.kind == INT, branch) if is_done[0] else OK


cdef int _carry_value(Envelope *e, const Passage *p, const Instruction *type, int node, int level) noexcept nogil:
    """Write the value of a member, which is none that is null."""
    cdef Run *r = e.made
    cdef const Instruction *into = r.code + node
    cdef Py_ssize_t place = r.size
    cdef bint is_done
    if p.count >= 0:
        if into.kind == OPTIONAL:
            if _put(r, <uint8_t>(into.a[1] << 1)):
                return LEFT
            node = into.a[0]
        if r.code[node].kind == MAP:
            return _carry_row(e, p, r.code + node, level)
        return _carry_record(e, p, node, level)
    if _carry_scalar(e, type, into, &is_done):
        return LEFT
    if is_done:
        return OK
    r.size = place
    if _show(e, <int>(type - e.source.code), level):
        return LEFT
    if into.kind == OPTIONAL and into.a[3] and r.at[0] == 34:
        if _note_text(r) or _put(r, <uint8_t>(into.a[2] << 1)):
            return LEFT
    elif _write(r, node, level):
        return LEFT
    return LEFT if r.at != r.end else OK


cdef int _carry_null(Run *r, const Member *member) noexcept nogil:
    """Write that a member is null, which is noted where it would be absent."""
    cdef int null = _null_of(r.code + member.node)
    if member.missing > NULL_ or null < 0 or _put(r, <uint8_t>(null << 1)):
        return LEFT
    return _note(r, <const uint8_t *>b"null", 4) if member.missing == ABSENT else OK


cdef int _carry_unnamed(Envelope *e, Cursor *c, const Passage *p) noexcept nogil:
    """Note a field that the record does not name."""
    cdef const Instruction *type
    cdef bint is_null
    if _pass_branch(e.source, p, &type, &is_null):
        return LEFT
    if is_null:
        e.made.at, e.made.end = <const uint8_t *>b"null", <const uint8_t *>b"null" + 4
    elif _show(e, <int>(type - e.source.code), c.level + 1):
        return LEFT
    c.known, c.name, c.size = NULL, e.texts + p.label, p.size
    return LEFT if _write_unnamed(e.made, c) or e.made.at != e.made.end else OK


cdef int _carry_field(Envelope *e, Cursor *c, const Passage *p) noexcept nogil:
    """Write a field as the member that it is."""
    cdef Run *r = e.made
    cdef const Member *member = r.members + c.record.a[0] + p.target
    cdef const Instruction *type
    cdef Slice *slice
    cdef Py_ssize_t place, noted
    cdef bint is_null
    if p.target < 0:
        return _carry_unnamed(e, c, p)
    if _place(r, c, p.target) or _pass_branch(e.source, p, &type, &is_null):
        return LEFT
    place, noted = r.size, r.noted
    _step_to(r, member)
    if _carry_null(r, member) if is_null else _carry_value(e, p, type, member.node, c.level + 1):
        return LEFT
    r.stepped -= 1
    slice = r.slices + c.base + p.target
    slice.state, slice.start, slice.stop, slice.first_note, slice.last_note = WRITTEN, place, r.size, noted, r.noted
    return OK


cdef int _carry_record(Envelope *e, const Passage *p, int node, int level) noexcept nogil:
    """Write a record."""
    cdef Cursor c
    cdef int i
    if _open_record(e.made, &c, node, level):
        return LEFT
    for i in range(p.first, p.first + p.count):
        if _carry_field(e, &c, e.passages + i):
            return LEFT
    return _close_record(e.made, &c)


# A whole message: an envelope beside its schema, which may stand in a Kafka record.

cdef int _carry_envelope(Envelope *e, const Passage *p, int node, int level) noexcept nogil:
    """Write an envelope as the payload beside its schema, for which a number of entries stands that no map has."""
    cdef Cursor c
    cdef int payload
    if _open_record(e.made, &c, node, level) or _write_head(e.made, &c, &payload) or payload != p.target:
        return LEFT
    return _carry_field(e, &c, p) or _close_record(e.made, &c)


cdef int _carry_topic(Envelope *e, Cursor *c, const ColumnValue *topic) noexcept nogil:
    """Write the name of a topic as the first member."""
    cdef Run *r = e.made
    cdef const Instruction *type = r.code + r.members[c.record.a[0]].node
    cdef Slice *slice = r.slices + c.base
    slice.state, slice.start = WRITTEN, r.size
    if type.kind != OPTIONAL or _put(r, <uint8_t>(type.a[1] << 1)) or _put_long(r, topic.size):
        return LEFT
    if _put_bytes(r, topic.start, topic.size):
        return LEFT
    c.last, slice.stop = 0, r.size
    return OK


cdef int _carry_of_kafka(
    Envelope *e, const Passage *value, const ColumnValue *topic, const ColumnValue *key, const ColumnValue *raw
) noexcept nogil:
    """Write a Kafka record: its topic, its key, and an envelope; the passages of the three stand one behind another."""
    cdef Run *r = e.made
    cdef Run *s = e.source
    cdef const Passage *of_key = value + 1
    cdef const Passage *of_value = value + 2
    cdef const Member *member
    cdef Slice *slice
    cdef Cursor c
    if _open_record(r, &c, r.root, 1) or _carry_topic(e, &c, topic):
        return LEFT
    s.at, s.end = key.start, key.start + key.size
    if _carry_field(e, &c, of_key) or s.at != s.end or _place(r, &c, of_value.target):
        return LEFT
    s.at, s.end = raw.start, raw.start + raw.size
    member = r.members + c.record.a[0] + of_value.target
    slice = r.slices + c.base + of_value.target
    slice.state, slice.start, slice.first_note = WRITTEN, r.size, r.noted
    _step_to(r, member)
    if r.code[member.node].kind != OPTIONAL or _put(r, <uint8_t>(r.code[member.node].a[1] << 1)):
        return LEFT
    if _carry_envelope(e, value, r.code[member.node].a[0], 2):
        return LEFT
    r.stepped -= 1
    slice = r.slices + c.base + of_value.target
    slice.stop, slice.last_note = r.size, r.noted
    return _close_record(r, &c)


cdef int _carry_message(
    Envelope *e, const ColumnValue *topic, const ColumnValue *key, const ColumnValue *raw, Py_ssize_t fixed
) noexcept nogil:
    """Append the payload of a message, without its key if that is NULL; `fixed` bytes of its text are always there."""
    cdef Run *r = e.made
    cdef Run *s = e.source
    cdef Py_ssize_t begin = r.size
    _begin(r, raw.start, 0)
    _begin(s, raw.start, raw.size)
    r.said_size = r.pointed = e.shown = 0
    if key == NULL:
        if _carry_envelope(e, e.passages, r.root, 1):
            return LEFT
    elif key.start == NULL or _carry_of_kafka(e, e.passages, topic, key, raw):
        return LEFT
    if s.at != s.end:
        return LEFT
    # No value that is copied takes more than six times as much in a text, as a control character does.
    if fixed + e.shown + 6 * (raw.size + (0 if key == NULL else key.size + topic.size)) > r.most_size:
        return LEFT
    return _end_message(r, begin)


cdef Py_ssize_t _carry_column_of_messages(
    Envelope *e, const Column *values, const Column *keys, const ColumnValue *topic, Py_ssize_t fixed, Py_ssize_t most
) noexcept nogil:
    """Append the payloads of messages up to one that is left, and say where each ends; return their number."""
    cdef Run *r = e.made
    cdef ColumnValue raw, key
    cdef Py_ssize_t i
    cdef int32_t *ends = r.ends
    if r.ends_room < values.count:
        ends = <int32_t *>realloc(r.ends, values.count * sizeof(int32_t))
        if ends == NULL:
            return 0
        r.ends, r.ends_room = ends, values.count
    for i in range(values.count):
        if _column_value(values, i, &raw) or (keys != NULL and _column_value(keys, i, &key)):
            return i
        if raw.start != NULL:
            if _carry_message(e, topic, NULL if keys == NULL else &key, &raw, fixed) or r.size > most:
                return i
        ends[i] = <int32_t>r.size
    return values.count


cdef class EnvelopeEngine(Engine):
    """The engine of envelopes of one schema, for any number of threads.

    `program` is that of the wire schema; `source` that of the schemas of values and keys, with the root of neither.
    `passages` has a row of integers for each of their fields, whose labels are in `labels`, and before these one for
    the envelope, and with `has_keys` one for the key and one for the value of a Kafka record. The text of a message has
    `fixed` bytes and those of its values.
    """

    cdef Engine _source
    cdef bytes _passages, _labels
    cdef Py_ssize_t _fixed
    cdef bint _has_keys

    def __cinit__(self, program, source, passages, bytes labels, Py_ssize_t fixed, bint has_keys):
        self._source = Engine(source)
        self._passages, self._labels = passages.tobytes(), labels + bytes(SLACK)
        self._fixed, self._has_keys = fixed, has_keys

    def read_column(self, values, keys, bytes topic not None, Py_ssize_t most):
        """Return the payloads of a column of envelopes (`Slices`), where each ends, and the index behind the last.

        The ends are 32-bit integers. A null has no bytes. It stops at a value that is left to its text, or that ends
        behind `most` bytes. `keys` is a column of as many keys, or None if messages have none, and no topic either.
        """
        cdef Column column, beside
        if self._root < 0 or self._source._root < 0:
            return b"", b"", 0
        _open_column(&column, values)
        try:
            if keys is None:
                return self._read(&column, NULL, topic, most)
            _open_column(&beside, keys)
            try:
                return self._read(&column, &beside, topic, most)
            finally:
                _close_column(&beside)
        finally:
            _close_column(&column)

    cdef tuple _read(self, const Column *column, const Column *keys, bytes topic, Py_ssize_t most):
        cdef ColumnValue name
        cdef Envelope e
        cdef Py_ssize_t done
        if self._has_keys != (keys != NULL) or (self._has_keys and keys.count != column.count):
            raise ValueError("as many keys as values, if there are keys")
        if not 0 <= most < <Py_ssize_t>1 << 31:
            raise ValueError("payloads that end within 31 bits")
        name.start, name.size = _start(topic), PyBytes_GET_SIZE(topic)
        e.made = self._borrow_run(&self._writing)
        e.source = self._source._borrow_run(&self._source._reading)
        e.passages = <const Passage *>PyBytes_AS_STRING(self._passages)
        e.texts = <const uint8_t *>PyBytes_AS_STRING(self._labels)
        with nogil:
            done = _carry_column_of_messages(&e, column, keys, &name, self._fixed, most)
        self._source._return_run(e.source, &self._source._reading, False)
        ends = PyBytes_FromStringAndSize(<const char *>e.made.ends, done * sizeof(int32_t))
        return self._return_run(e.made, &self._writing, True), ends, done
