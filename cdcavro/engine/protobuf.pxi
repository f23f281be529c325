# Messages of protobuf by a table of their fields, put out as JSON, and the rows in them as lines.


cdef enum:
    MOST_KINDS = 16
    MOST_NUMBERED = 32
    MOST_BODIES = 4
    MOST_MARK = 480  # bytes of a message without rows that stands among others


cdef enum:  # what a field is, as PROTO_TYPES names it
    NO_FIELD, OF_32_BITS, OF_64_BITS, OF_ONE_BIT, OF_AN_ENUM, OF_CHARACTERS, OF_BYTES, OF_A_MESSAGE, OF_A_BODY


cdef dict PROTO_TYPES = {
    "int32": OF_32_BITS, "int64": OF_64_BITS, "bool": OF_ONE_BIT, "enum": OF_AN_ENUM, "string": OF_CHARACTERS,
    "bytes": OF_BYTES, "message": OF_A_MESSAGE, "body": OF_A_BODY,
}


cdef enum:  # what a field is of rows, as ROW_PARTS names it
    NO_PART, A_FACT, NOT_OF_A_ROW, A_LINE, SOME_ROWS, SOME_BEFORE, SOME_AFTER
    COLUMN_NAME, COLUMN_VALUE, COLUMN_NULL, COLUMN_TYPE, COLUMN_CODE, COLUMN_KEY


cdef dict ROW_PARTS = {
    "": NO_PART, "fact": A_FACT, "statement": NOT_OF_A_ROW, "line": A_LINE, "rows": SOME_ROWS,
    "before": SOME_BEFORE, "after": SOME_AFTER, "name": COLUMN_NAME, "value": COLUMN_VALUE, "null": COLUMN_NULL,
    "type": COLUMN_TYPE, "code": COLUMN_CODE, "key": COLUMN_KEY,
}


cdef struct ProtoField:
    int type
    int part
    int target  # which message, enum or body
    bint is_repeated
    Extent label


cdef struct ProtoBody:  # bytes that are a message, which other fields tell
    int teller
    int absent  # what the teller is if it is not there
    int guard  # a field that must have one of some values or none, 0 for none
    uint32_t guarded
    int kinds[MOST_NUMBERED]  # by what the teller is the message, -1 if they are just bytes
    Extent labels[MOST_NUMBERED]  # of the member that has it; without one, its members stand in place of the body
    int needed  # the number of a field that has to be among its members, and what stands for it if it is not there
    Extent otherwise


cdef struct ProtoRun:
    Run *r
    int64_t left  # how many messages may be in it yet
    uint32_t seen  # the numbers of the fields of the message that was read last


cdef struct ProtoMessage:  # a message that is being read
    int kind
    const uint8_t *at
    const uint8_t *end
    uint32_t seen
    int open  # the number of the repeated field whose array is open
    bint first
    bint is_done  # a body was there, behind which nothing comes
    int words[MOST_NUMBERED]  # the numbers of enums


cdef struct RowColumn:  # a column of a row, with its value
    Extent name, value, type
    int64_t code
    bint has_type, has_code, is_null, is_key


cdef struct ColumnList:
    RowColumn *items
    int64_t count
    int64_t room


cdef struct LineRun:  # a message whose rows are put out as lines
    ProtoRun proto
    Run *rows  # of the line, and what their columns had before
    Run *olds
    ColumnList first, before, after  # the columns of the line's first row, and those of the row that is read
    ColumnList last  # those of the line before, and where what they state was put out
    Py_ssize_t stated_at, stated_size
    const uint8_t *end  # of the message, up to which may be read
    RowColumn *column
    int64_t count  # of the line's rows
    bint is_delete
    bint has_old
    bint has_rows  # any line has
    int stored  # the kind of what the line's message holds; a mark, or nothing yet


cdef int _take_varint(ProtoMessage *m, uint64_t *value) noexcept nogil:
    cdef int shift
    value[0] = 0
    for shift in range(0, 70, 7):
        if m.at >= m.end:
            return LEFT
        value[0] |= <uint64_t>(m.at[0] & 0x7F) << shift
        m.at += 1
        if (m.at - 1)[0] < 0x80:
            return OK
    return LEFT


cdef class ProtobufReader(Engine):
    """Reads messages of protobuf, which it puts out as JSON text; it leaves what is not plain.

    `kinds` has for each kind of message, the outermost first, its fields: number, type, target, whether it may stand
    several times, what is put out before it, and what it is of rows. `enums` has the symbols as JSON, empty where there
    is none; `bodies` what bytes hold that are messages. The outermost has the field `required`, and its text ends in
    `tail`; in it are at most `most` messages. Rows are in messages of the kind `rows`, and `marks` are the tellers of
    bodies that are none and have no rows.
    """

    cdef list _kept
    cdef ProtoField _fields[MOST_KINDS][MOST_NUMBERED]
    cdef Extent _enums[MOST_KINDS][MOST_NUMBERED]
    cdef int _counts[MOST_KINDS]
    cdef ProtoBody _bodies[MOST_BODIES]
    cdef Extent _tail
    cdef int _required, _rows
    cdef uint32_t _marks
    cdef int64_t _most

    def __init__(self, program, list kinds, list enums, list bodies, required, bytes tail, most, rows, marks):
        cdef ProtoField *field
        self._kept = [kinds, enums, bodies, tail]
        if max(len(kinds), len(enums)) > MOST_KINDS or len(bodies) > MOST_BODIES:
            raise ValueError("a reader of at most 16 messages and enums")
        for i, fields in enumerate(kinds):
            for number, type, target, is_repeated, label, part in fields:
                if not 0 < number < MOST_NUMBERED:
                    raise ValueError("numbers of fields below 32")
                field = &self._fields[i][number]
                field.type, field.target, field.is_repeated = PROTO_TYPES[type], target, is_repeated
                field.label, field.part = _extent_of(label), ROW_PARTS[part]
        for i, symbols in enumerate(enums):
            self._counts[i] = min(len(symbols), MOST_NUMBERED)
            for j, symbol in enumerate(symbols[:MOST_NUMBERED]):
                self._enums[i][j] = _extent_of(symbol)
        for i, facts in enumerate(bodies):
            self._add_body(&self._bodies[i], facts)
        self._tail, self._required, self._most, self._rows = _extent_of(tail), required, most, rows
        for word in marks:
            self._marks |= 1 << <int>word

    cdef int _add_body(self, ProtoBody *body, tuple facts) except -1:
        teller, absent, guard, guarded, stored, needed, otherwise = facts
        body.teller, body.absent, body.guard = teller, absent, guard
        body.needed, body.otherwise = needed, _extent_of(otherwise)
        for word in guarded:
            body.guarded |= 1 << <int>word
        for i in range(MOST_NUMBERED):
            body.kinds[i] = -1
        for word, (label, kind) in stored.items():
            body.kinds[word], body.labels[word] = kind, _extent_of(label)
        return 0

    def text(self, bytes raw not None):
        """Return the JSON text of a message; None where it is left to the exact way, as whatever is faulty is.

        Raises `OverflowError` for one with too many messages in it.
        """
        cdef const uint8_t *start = _start(raw)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(raw)
        cdef ProtoRun run
        cdef int left
        run.r, run.left = self._borrow_run(&self._reading), self._most
        with nogil:
            left = LEFT if size > run.r.most_size else self._put_text(&run, start, size)
        made = self._return_run(run.r, &self._reading, left == OK)
        if run.left < 0:
            raise OverflowError
        return made

    def column(self, column, Py_ssize_t first, Py_ssize_t base, Py_ssize_t most):
        """Return the rows of a column's messages as lines, and where those of each end, as `Engine.decode_column` does.

        The rows of a message within are a line, and one without any that may stand between them is an empty line. It
        also stops at what may be a text, and at what has no rows.
        """
        cdef Column values
        cdef ColumnValue given
        cdef LineRun run
        cdef Run *r
        cdef Py_ssize_t i, kept
        ends = array("i")
        memset(&run, 0, sizeof(LineRun))
        _open_column(&values, column)
        try:
            if not 0 <= first <= values.count or not 0 <= base <= most < <Py_ssize_t>1 << 31:
                raise ValueError("the values from an index on, which end within 31 bits")
            self._open_lines(&run)
            r = run.proto.r
            for i in range(first, values.count):
                if _column_value(&values, i, &given):
                    break
                kept = r.size
                if given.start != NULL and (_may_be_text(&given) or given.size > r.most_size
                                            or self._put_lines(&run, given.start, given.size)
                                            or r.size > most - base):
                    r.size = kept
                    break
                ends.append(base + r.size)
            made = PyBytes_FromStringAndSize(<const char *>r.out, r.size)
        finally:
            self._close_lines(&run)
            _close_column(&values)
        return made, ends.tobytes(), first + len(ends)

    cdef int _put_text(self, ProtoRun *run, const uint8_t *start, Py_ssize_t size) noexcept nogil:
        if _put(run.r, 123) or self._put_members(run, 0, start, start + size, True):
            return LEFT
        return _put_extent(run.r, &self._tail) if run.seen >> self._required & 1 else LEFT

    cdef int _put_message(self, ProtoRun *run, int kind, const uint8_t *start, const uint8_t *end) noexcept nogil:
        return LEFT if _put(run.r, 123) or self._put_members(run, kind, start, end, True) or _put(run.r, 125) else OK

    cdef int _put_members(
        self, ProtoRun *run, int kind, const uint8_t *start, const uint8_t *end, bint first
    ) noexcept nogil:
        """Put out the members of a message, whose fields stand in any order, and repeated ones together."""
        cdef ProtoMessage m
        m.kind, m.at, m.end, m.first, m.seen, m.open, m.is_done = kind, start, end, first, 0, 0, False
        run.left -= 1
        if run.left < 0:
            return LEFT
        while m.at < m.end:
            if self._put_field(run, &m):
                return LEFT
        run.seen = m.seen
        return _put(run.r, 93) if m.open else OK

    cdef int _put_field(self, ProtoRun *run, ProtoMessage *m) noexcept nogil:
        cdef Run *r = run.r
        cdef const ProtoField *field
        cdef int number, open = m.open
        if self._take_tag(m, &number):
            return LEFT
        field = &self._fields[m.kind][number]
        if open and open == number:
            return LEFT if _put(r, 44) else self._put_item(run, m, field, number)
        if open and _put(r, 93):
            return LEFT
        if field.type == OF_A_BODY:
            return self._put_body(run, m, field)
        if (not m.first and _put(r, 44)) or _put_extent(r, &field.label):
            return LEFT
        m.first = False
        return LEFT if (field.is_repeated and _put(r, 91)) else self._put_item(run, m, field, number)

    cdef int _take_tag(self, ProtoMessage *m, int *number) noexcept nogil:
        """Read which field is next; stop at one of another type, and at one that is there already elsewhere."""
        cdef const ProtoField *field
        cdef uint64_t tag
        if m.is_done or _take_varint(m, &tag) or tag >= MOST_NUMBERED << 3:
            return LEFT
        number[0] = <int>tag >> 3
        field = &self._fields[m.kind][number[0]]
        if field.type == NO_FIELD or tag & 7 != (0 if field.type <= OF_AN_ENUM else 2):
            return LEFT
        if m.open and m.open == number[0]:
            return OK
        if m.seen >> number[0] & 1:
            return LEFT
        m.open = number[0] if field.is_repeated else 0
        m.seen |= <uint32_t>1 << number[0]
        return OK

    cdef int _put_item(self, ProtoRun *run, ProtoMessage *m, const ProtoField *field, int number) noexcept nogil:
        cdef Run *r = run.r
        cdef uint64_t value
        cdef int64_t whole
        cdef const uint8_t *start
        if _take_varint(m, &value):
            return LEFT
        whole = <int64_t>value
        if field.type == OF_32_BITS or field.type == OF_64_BITS:
            if field.type == OF_32_BITS and not -(<int64_t>1 << 31) <= whole < <int64_t>1 << 31:
                return LEFT
            return _render_digits(r, whole)
        if field.type == OF_ONE_BIT:
            if value > 1:
                return LEFT
            return _put_bytes(r, <const uint8_t *>b"true" if value else <const uint8_t *>b"false", 5 - <int>value)
        if field.type == OF_AN_ENUM:
            if not 0 <= whole < self._counts[field.target] or not self._enums[field.target][whole].size:
                return LEFT
            m.words[number] = <int>whole
            return _put_extent(r, &self._enums[field.target][whole])
        if value > <uint64_t>(m.end - m.at):
            return LEFT
        start = m.at
        m.at += value
        if field.type == OF_A_MESSAGE:
            return self._put_message(run, field.target, start, m.at)
        return _put_quoted(r, start, m.at, m.end) if field.type == OF_CHARACTERS else _put_raw(r, start, m.at)

    cdef int _put_body(self, ProtoRun *run, ProtoMessage *m, const ProtoField *field) noexcept nogil:
        """Put out bytes as the message that they are, or in base64; whatever comes behind them is left."""
        cdef Run *r = run.r
        cdef const ProtoBody *body = &self._bodies[field.target]
        cdef int word = m.words[body.teller] if m.seen >> body.teller & 1 else body.absent
        cdef bint is_plain = not body.guard or not m.seen >> body.guard & 1 or body.guarded >> m.words[body.guard] & 1
        cdef int kind = body.kinds[word] if word >= 0 and is_plain else -1
        cdef uint64_t size
        cdef const uint8_t *start
        m.is_done = True
        if _take_varint(m, &size) or size > <uint64_t>(m.end - m.at):
            return LEFT
        start = m.at
        m.at += size
        if kind >= 0 and not body.labels[word].size:
            return self._put_inside(run, body, kind, m.first, start, m.at)
        if (not m.first and _put(r, 44)) or _put_extent(r, &field.label if kind < 0 else &body.labels[word]):
            return LEFT
        m.first = False
        return _put_raw(r, start, m.at) if kind < 0 else self._put_message(run, kind, start, m.at)

    cdef int _put_inside(
        self, ProtoRun *run, const ProtoBody *body, int kind, bint first, const uint8_t *start, const uint8_t *end
    ) noexcept nogil:
        """Put out the members of a message behind those around it."""
        if self._put_members(run, kind, start, end, first):
            return LEFT
        return OK if run.seen >> body.needed & 1 else _put_extent(run.r, &body.otherwise)

    # Rows as lines.

    cdef int _open_lines(self, LineRun *run) except -1:
        run.proto.r = self._borrow_run(&self._reading)
        run.rows = self._borrow_run(&self._writing)
        run.olds = self._borrow_run(&self._writing)
        return 0

    cdef int _close_lines(self, LineRun *run) except -1:
        free(run.first.items)
        free(run.before.items)
        free(run.after.items)
        free(run.last.items)
        if run.proto.r != NULL:
            self._return_run(run.proto.r, &self._reading, False)
        if run.rows != NULL:
            self._return_run(run.rows, &self._writing, False)
        if run.olds != NULL:
            self._return_run(run.olds, &self._writing, False)
        return 0

    cdef int _put_lines(self, LineRun *run, const uint8_t *start, Py_ssize_t size) noexcept nogil:
        run.proto.left, run.has_rows, run.end = self._most, False, start + size
        return LEFT if self._take_message(run, 0, start, start + size) or not run.has_rows else OK

    cdef int _take_message(self, LineRun *run, int kind, const uint8_t *start, const uint8_t *end) noexcept nogil:
        """Take what is of rows in a message, all else of which is checked."""
        cdef ProtoMessage m
        m.kind, m.at, m.end, m.seen, m.open, m.is_done = kind, start, end, 0, 0, False
        run.proto.left -= 1
        if run.proto.left < 0:
            return LEFT
        while m.at < m.end:
            if self._take_field(run, &m):
                return LEFT
        return OK

    cdef int _take_field(self, LineRun *run, ProtoMessage *m) noexcept nogil:
        cdef const ProtoField *field
        cdef const uint8_t *start
        cdef uint64_t value
        cdef int number
        if self._take_tag(m, &number) or _take_varint(m, &value):
            return LEFT
        field = &self._fields[m.kind][number]
        if field.type <= OF_AN_ENUM:
            return self._take_number(run, m, field, number, value)
        if value > <uint64_t>(m.end - m.at):
            return LEFT
        start = m.at
        m.at += value
        if field.type == OF_A_BODY:
            return self._take_body(run, m, field, start)
        if field.type == OF_CHARACTERS:
            return _take_characters(run, field, start, m.at)
        if field.type != OF_A_MESSAGE:
            return LEFT
        if field.part == A_LINE:
            return self._take_line(run, field.target, start, m.at)
        if field.part == SOME_ROWS:
            return self._take_row(run, field.target, start, m.at)
        if field.part == SOME_BEFORE:
            return self._take_column(run, &run.before, field.target, start, m.at)
        if field.part == SOME_AFTER:
            return self._take_column(run, &run.after, field.target, start, m.at)
        return self._take_message(run, field.target, start, m.at)

    cdef int _take_number(
        self, LineRun *run, ProtoMessage *m, const ProtoField *field, int number, uint64_t value
    ) noexcept nogil:
        cdef Run *r = run.proto.r
        cdef int64_t whole = <int64_t>value
        if field.type == OF_AN_ENUM:
            if not 0 <= whole < self._counts[field.target] or not self._enums[field.target][whole].size:
                return LEFT
            m.words[number] = <int>whole
            if field.part != A_FACT:
                return OK
            return _put_extent(r, &field.label) or _put_extent(r, &self._enums[field.target][whole]) or _put(r, 44)
        if field.type == OF_ONE_BIT:
            if value > 1 or (value and field.part == NOT_OF_A_ROW):
                return LEFT
            if field.part == COLUMN_NULL:
                run.column.is_null = <bint>value
            elif field.part == COLUMN_KEY:
                run.column.is_key = <bint>value
            return OK
        if field.type == OF_32_BITS and not -(<int64_t>1 << 31) <= whole < <int64_t>1 << 31:
            return LEFT
        if field.part == COLUMN_CODE:
            run.column.code, run.column.has_code = whole, True
        elif field.part == A_FACT:
            return _put_extent(r, &field.label) or _render_digits(r, whole) or _put(r, 44)
        return OK

    cdef int _take_body(
        self, LineRun *run, ProtoMessage *m, const ProtoField *field, const uint8_t *start
    ) noexcept nogil:
        """Take the rows of the message that bytes are; they may be without rows if they are a mark."""
        cdef const ProtoBody *body = &self._bodies[field.target]
        cdef int word = m.words[body.teller] if m.seen >> body.teller & 1 else body.absent
        cdef bint is_plain = not body.guard or not m.seen >> body.guard & 1 or body.guarded >> m.words[body.guard] & 1
        m.is_done = True
        if word < 0 or not is_plain:
            return LEFT
        if body.kinds[word] < 0:
            run.stored = 0
            return OK if m.kind != 0 and self._marks >> word & 1 else LEFT
        run.stored = body.kinds[word]
        return self._take_message(run, body.kinds[word], start, m.at)

    cdef int _take_line(self, LineRun *run, int kind, const uint8_t *start, const uint8_t *end) noexcept nogil:
        """Put out the rows of a message as a line; without any, and if it is a mark, an empty one."""
        cdef Run *r = run.proto.r
        cdef Py_ssize_t kept = r.size
        run.stored, run.count, run.is_delete, run.has_old = -1, 0, False, False
        run.rows.size = run.olds.size = 0
        if _put(r, 123) or self._take_message(run, kind, start, end) or run.stored < 0:
            return LEFT
        if run.stored != self._rows:
            r.size = kept
            return LEFT if end - start > MOST_MARK else _put(r, NEWLINE)
        if run.count == 0 or _put_stated(run):
            return LEFT
        run.has_rows = True
        if run.is_delete and _put_bytes(r, <const uint8_t *>b',"isDelete":true', 16):
            return LEFT
        if _put_bytes(r, <const uint8_t *>b',"data":[', 9) or _put_bytes(r, run.rows.out, run.rows.size) or _put(r, 93):
            return LEFT
        if run.has_old:
            if _put_bytes(r, <const uint8_t *>b',"old":[', 8) or _put_bytes(r, run.olds.out, run.olds.size):
                return LEFT
            if _put(r, 93):
                return LEFT
        return _put(r, 125) or _put(r, NEWLINE)

    cdef int _take_row(self, LineRun *run, int kind, const uint8_t *start, const uint8_t *end) noexcept nogil:
        """Put out a row, which has the columns of the first one of its line, and what its columns had before."""
        cdef ColumnList *listed = &run.after
        cdef ColumnList kept
        cdef bint is_delete
        run.before.count = run.after.count = 0
        if self._take_message(run, kind, start, end):
            return LEFT
        is_delete = run.after.count == 0
        if is_delete:
            listed = &run.before
        if listed.count == 0:
            return LEFT
        if run.count and (is_delete != run.is_delete or not _have_same_facts(listed, &run.first)):
            return LEFT
        run.is_delete = is_delete
        if run.count and (_put(run.rows, 44) or _put(run.olds, 44)):
            return LEFT
        if _put_values(run.rows, listed, run.end):
            return LEFT
        if is_delete or run.before.count == 0:
            if _put_bytes(run.olds, <const uint8_t *>b"null", 4):
                return LEFT
        elif _put_former(run.olds, &run.before, &run.after, run.end):
            return LEFT
        else:
            run.has_old = True
        if run.count == 0:
            kept, run.first = run.first, listed[0]
            listed[0] = kept
        run.count += 1
        return OK

    cdef int _take_column(
        self, LineRun *run, ColumnList *list, int kind, const uint8_t *start, const uint8_t *end
    ) noexcept nogil:
        cdef void *kept
        if list.count == list.room:
            kept = realloc(list.items, (2 * list.room + 16) * sizeof(RowColumn))
            if kept == NULL:
                return LEFT
            list.items, list.room = <RowColumn *>kept, 2 * list.room + 16
        run.column = list.items + list.count
        memset(run.column, 0, sizeof(RowColumn))
        run.column.name.start = run.column.value.start = run.column.type.start = start
        list.count += 1
        return self._take_message(run, kind, start, end)


cdef int _take_characters(
    LineRun *run, const ProtoField *field, const uint8_t *start, const uint8_t *end
) noexcept nogil:
    cdef Extent text
    text.start, text.size = start, end - start
    if field.part == COLUMN_NAME:
        run.column.name = text
    elif field.part == COLUMN_VALUE:
        run.column.value = text
    elif field.part == COLUMN_TYPE:
        run.column.type, run.column.has_type = text, True
    elif field.part == A_FACT:
        if _put_extent(run.proto.r, &field.label) or _put_quoted(run.proto.r, start, end, run.end):
            return LEFT
        return _put(run.proto.r, 44)
    elif (field.part == NOT_OF_A_ROW and text.size) or not cdcavro_is_utf8(start, end):
        return LEFT
    return OK


cdef inline bint _is_same_text(const Extent *one, const Extent *other) noexcept nogil:
    return one.size == other.size and (one.size == 0 or memcmp(one.start, other.start, one.size) == 0)


cdef bint _have_same_facts(const ColumnList *one, const ColumnList *other) noexcept nogil:
    """Return whether two rows state the same of their columns."""
    cdef const RowColumn *a
    cdef const RowColumn *b
    cdef int64_t i
    if one.count != other.count:
        return False
    for i in range(one.count):
        a, b = one.items + i, other.items + i
        if a.code != b.code or a.has_type != b.has_type or a.has_code != b.has_code or a.is_key != b.is_key:
            return False
        if not _is_same_text(&a.name, &b.name) or not _is_same_text(&a.type, &b.type):
            return False
    return True


cdef inline int _put_value_of(Run *o, const RowColumn *column, const uint8_t *end) noexcept nogil:
    """Put out a column with its value: an absent one is an empty text."""
    if _put_quoted(o, column.name.start, column.name.start + column.name.size, end) or _put(o, 58):
        return LEFT
    if not column.is_null:
        return _put_quoted(o, column.value.start, column.value.start + column.value.size, end)
    if not cdcavro_is_utf8(column.value.start, column.value.start + column.value.size):
        return LEFT
    return _put_bytes(o, <const uint8_t *>b"null", 4)


cdef int _put_values(Run *o, const ColumnList *list, const uint8_t *end) noexcept nogil:
    """Put out a row as an object."""
    cdef int64_t i
    if _put(o, 123):
        return LEFT
    for i in range(list.count):
        if (i and _put(o, 44)) or _put_value_of(o, list.items + i, end):
            return LEFT
    return _put(o, 125)


cdef int _put_former(
    Run *o, const ColumnList *before, const ColumnList *after, const uint8_t *end
) noexcept nogil:
    """Put out the columns that changed as they were; if none did, the last, as no columns would say nothing."""
    cdef const RowColumn *was
    cdef const RowColumn *now
    cdef bint is_first = True
    cdef int64_t i
    if before.count != after.count or _put(o, 123):
        return LEFT
    for i in range(before.count):
        was, now = before.items + i, after.items + i
        if not _is_same_text(&was.name, &now.name):
            return LEFT
        # The type before is not put out, so it is checked here.
        if not _is_same_text(&was.type, &now.type):
            if not cdcavro_is_utf8(was.type.start, was.type.start + was.type.size):
                return LEFT
        if was.is_null == now.is_null and _is_same_text(&was.value, &now.value):
            if i + 1 < before.count or not is_first:
                continue
        if (not is_first and _put(o, 44)) or _put_value_of(o, was, end):
            return LEFT
        is_first = False
    return _put(o, 125)


cdef int _put_stated(LineRun *run) noexcept nogil:
    """Put out what a line's rows state of their columns, mostly the same as those of the line before."""
    cdef Run *r = run.proto.r
    cdef ColumnList kept
    cdef Py_ssize_t start
    if _put_bytes(r, <const uint8_t *>b'"columns":', 10):
        return LEFT
    start = r.size
    if run.stated_size and _have_same_facts(&run.first, &run.last):
        if _reserve(r, run.stated_size):
            return LEFT
        memcpy(r.out + start, r.out + run.stated_at, run.stated_size)
        r.size += run.stated_size
    elif _put_all_stated(run, start):
        return LEFT
    else:
        kept, run.last = run.last, run.first
        run.first = kept
    run.stated_at, run.stated_size = start, r.size - start
    return OK


cdef int _put_all_stated(LineRun *run, Py_ssize_t start) noexcept nogil:
    """Put out what rows state of their columns as one text, in which each name and type has its length."""
    cdef Run *r = run.proto.r
    cdef Py_ssize_t end
    cdef const RowColumn *column
    cdef int64_t i
    for i in range(run.first.count):
        column = run.first.items + i
        if _render_digits(r, column.name.size) or _put(r, 58) or _put_extent(r, &column.name):
            return LEFT
        if column.has_type and (_render_digits(r, column.type.size) or _put(r, 58) or _put_extent(r, &column.type)):
            return LEFT
        if column.has_code and (_put(r, 35) or _render_digits(r, column.code)):
            return LEFT
        if _put(r, 107 if column.is_key else 59):
            return LEFT
    end = r.size
    if _reserve(r, 8 * (end - start) + 16) or _put_quoted(r, r.out + start, r.out + end, r.out + end):
        return LEFT
    memmove(r.out + start, r.out + end, r.size - end)
    r.size -= end - start
    return OK


cdef int _put_raw(Run *r, const uint8_t *start, const uint8_t *end) noexcept nogil:
    """Put out bytes in base64."""
    cdef Extent raw
    raw.start, raw.size = start, end - start
    return _put_binary_value(r, &raw)
