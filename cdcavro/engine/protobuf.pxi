# Messages of protobuf by a table of their fields, put out as JSON.


cdef enum:
    MOST_KINDS = 16
    MOST_NUMBERED = 32
    MOST_BODIES = 4


cdef enum:  # what a field is, as PROTO_TYPES names it
    NO_FIELD, OF_32_BITS, OF_64_BITS, OF_ONE_BIT, OF_AN_ENUM, OF_CHARACTERS, OF_BYTES, OF_A_MESSAGE, OF_A_BODY


cdef dict PROTO_TYPES = {
    "int32": OF_32_BITS, "int64": OF_64_BITS, "bool": OF_ONE_BIT, "enum": OF_AN_ENUM, "string": OF_CHARACTERS,
    "bytes": OF_BYTES, "message": OF_A_MESSAGE, "body": OF_A_BODY,
}


cdef struct ProtoField:
    int type
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
    several times, and what is put out before it. `enums` has the symbols as JSON, empty where there is none; `bodies`
    what bytes hold that are messages. The outermost has the field `required`, and its text ends in `tail`; in it are at
    most `most` messages.
    """

    cdef list _kept
    cdef ProtoField _fields[MOST_KINDS][MOST_NUMBERED]
    cdef Extent _enums[MOST_KINDS][MOST_NUMBERED]
    cdef int _counts[MOST_KINDS]
    cdef ProtoBody _bodies[MOST_BODIES]
    cdef Extent _tail
    cdef int _required
    cdef int64_t _most

    def __init__(self, program, list kinds, list enums, list bodies, required, bytes tail, most):
        cdef ProtoField *field
        self._kept = [kinds, enums, bodies, tail]
        if max(len(kinds), len(enums)) > MOST_KINDS or len(bodies) > MOST_BODIES:
            raise ValueError("a reader of at most 16 messages and enums")
        for i, fields in enumerate(kinds):
            for number, type, target, is_repeated, label in fields:
                if not 0 < number < MOST_NUMBERED:
                    raise ValueError("numbers of fields below 32")
                field = &self._fields[i][number]
                field.type, field.target, field.is_repeated = PROTO_TYPES[type], target, is_repeated
                field.label = _extent_of(label)
        for i, symbols in enumerate(enums):
            self._counts[i] = min(len(symbols), MOST_NUMBERED)
            for j, symbol in enumerate(symbols[:MOST_NUMBERED]):
                self._enums[i][j] = _extent_of(symbol)
        for i, facts in enumerate(bodies):
            self._add_body(&self._bodies[i], facts)
        self._tail, self._required, self._most = _extent_of(tail), required, most

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
        """Return the texts of a column's messages as `Engine.decode_column` does.

        It also stops at what may be a text.
        """
        cdef Column values
        cdef ColumnValue given
        cdef ProtoRun run
        cdef Py_ssize_t i, kept
        ends = array("i")
        _open_column(&values, column)
        try:
            if not 0 <= first <= values.count or not 0 <= base <= most < <Py_ssize_t>1 << 31:
                raise ValueError("the values from an index on, which end within 31 bits")
            run.r = self._borrow_run(&self._reading)
            for i in range(first, values.count):
                if _column_value(&values, i, &given):
                    break
                kept, run.left = run.r.size, self._most
                if given.start != NULL and (_may_be_text(&given) or given.size > run.r.most_size
                                            or self._put_text(&run, given.start, given.size)
                                            or run.r.size > most - base):
                    run.r.size = kept
                    break
                ends.append(base + run.r.size)
            made = self._return_run(run.r, &self._reading, True)
        finally:
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
        cdef uint64_t tag
        cdef int number
        if m.is_done or _take_varint(m, &tag) or tag >= MOST_NUMBERED << 3:
            return LEFT
        number = <int>tag >> 3
        field = &self._fields[m.kind][number]
        if field.type == NO_FIELD or tag & 7 != (0 if field.type <= OF_AN_ENUM else 2):
            return LEFT
        if m.open and m.open == number:
            return LEFT if _put(r, 44) else self._put_item(run, m, field, number)
        if m.seen >> number & 1 or (m.open and _put(r, 93)):
            return LEFT
        m.open = number if field.is_repeated else 0
        m.seen |= <uint32_t>1 << number
        if field.type == OF_A_BODY:
            return self._put_body(run, m, field)
        if (not m.first and _put(r, 44)) or _put_extent(r, &field.label):
            return LEFT
        m.first = False
        return LEFT if (field.is_repeated and _put(r, 91)) else self._put_item(run, m, field, number)

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
        return _put_quoted(r, start, m.at, m.at) if field.type == OF_CHARACTERS else _put_raw(r, start, m.at)

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


cdef int _put_raw(Run *r, const uint8_t *start, const uint8_t *end) noexcept nogil:
    """Put out bytes in base64."""
    cdef Extent raw
    raw.start, raw.size = start, end - start
    return _put_binary_value(r, &raw)
