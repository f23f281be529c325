# Payload to payload: what a writer's schema wrote is checked, and becomes what the reader's would have written.


cdef enum:  # TurnKind: what is done with a datum, as in `avro/translation_program.py`
    ON_LEAVE, ON_NOTHING, ON_BOOLEAN, ON_INTEGER, ON_STRING, ON_BYTES, ON_TAKE, ON_DECIMAL, ON_ENUM
    ON_TO_FLOAT, ON_TO_DOUBLE, ON_WIDEN, ON_ARRAY, ON_MAP, ON_UNION, ON_INTO, ON_RECORD, ON_REORDER

cdef enum:  # ActionKind: what is done with a field
    ON_FIELD, ON_SKIP, ON_DEFAULT

cdef struct TurnInstruction:
    int32_t kind
    int32_t a
    int32_t b
    int32_t c

cdef struct Action:
    int32_t kind
    int32_t place
    int32_t first
    int32_t size

cdef struct TranslationProgram:
    const TurnInstruction *code
    const Action *actions
    const int32_t *indexes
    const int64_t *limits
    const uint8_t *texts
    int root
    bint is_same
    int most_levels
    int64_t most_items
    int64_t most_weightless
    Py_ssize_t most_bytes

cdef struct Piece:  # of a record: from `start` to `stop` in what is written, or in the texts of the program
    Py_ssize_t start
    Py_ssize_t stop
    bint is_stated

cdef struct Translation:  # what is on its way from one schema to another
    Run run
    const TranslationProgram *plan
    const uint8_t *start
    const uint8_t *kept  # from here on, what was read is the reader's as it is, and is yet to be written
    Py_ssize_t first  # where in what is written the payload begins
    int64_t items
    int64_t weightless
    Piece *pieces
    Py_ssize_t piece_count
    Py_ssize_t pieces_room

cdef enum:
    MOST_PIECES = 1 << 20
    MOST_PREFIX = 32
    MOST_IDLE = 4


cdef inline int _give(Translation *t, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Write bytes, up to the most that a translation may have."""
    if size > t.plan.most_bytes - (t.run.size - t.first):
        return LEFT
    return _put_bytes(&t.run, start, size)


cdef inline int _settle(Translation *t) noexcept nogil:
    """Write what was read and is the reader's as it is."""
    cdef Py_ssize_t size = t.run.at - t.kept
    if size == 0:
        return OK
    if _give(t, t.kept, size):
        return LEFT
    t.kept = t.run.at
    return OK


cdef inline int _settle_to(Translation *t, const uint8_t *place) noexcept nogil:
    """Write what was read up to a place, and leave out what stands between it and what is read next."""
    cdef Py_ssize_t size = place - t.kept
    if size and _give(t, t.kept, size):
        return LEFT
    t.kept = t.run.at
    return OK


cdef inline int _give_long(Translation *t, int64_t value) noexcept nogil:
    cdef uint8_t text[VARINT]
    return _give(t, text, cdcavro_varint(text, (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)))


cdef inline int _pass_long(Translation *t, int64_t *value) noexcept nogil:
    """Read an integer in its canonical form, which often is one byte."""
    cdef Run *r = &t.run
    if r.at < r.end and r.at[0] < 0x80:
        value[0] = <int64_t>(r.at[0] >> 1) ^ -<int64_t>(r.at[0] & 1)
        r.at += 1
        return OK
    return _read_long(r, value)


cdef inline int _pass_size(Translation *t, Py_ssize_t *size) noexcept nogil:
    """Read a length that the bytes behind it have, and pass them by."""
    cdef int64_t length
    if _pass_long(t, &length) or length < 0 or length > t.run.end - t.run.at:
        return LEFT
    size[0] = <Py_ssize_t>length
    t.run.at += length
    return OK


cdef inline int _pass_limited(Translation *t, const TurnInstruction *turn, int64_t *value) noexcept nogil:
    cdef const int64_t *limits = t.plan.limits + 2 * <Py_ssize_t>turn.a
    return _pass_long(t, value) or not limits[0] <= value[0] <= limits[1]


cdef inline int _pass_text(Translation *t) noexcept nogil:
    cdef Py_ssize_t size
    if _pass_size(t, &size):
        return LEFT
    return OK if cdcavro_is_utf8(t.run.at - size, t.run.at) else LEFT


cdef int _pass_decimal(Translation *t, const TurnInstruction *turn, Py_ssize_t *passed) noexcept nogil:
    """Pass the bytes of a decimal by, whose unscaled value must be within the bounds in the texts of the program."""
    cdef Py_ssize_t size = turn.c
    cdef const uint8_t *at
    cdef const uint8_t *bound = t.plan.texts + turn.a
    if size >= 0:
        if size > t.run.end - t.run.at:
            return LEFT
        t.run.at += size
    elif _pass_size(t, &size):
        return LEFT
    if size == 0:
        return LEFT
    passed[0] = size
    at = t.run.at - size
    # Without the bytes that only repeat the sign, the longer one is the greater one.
    while size > 1 and ((at[0] == 0 and at[1] < 0x80) or (at[0] == 0xFF and at[1] >= 0x80)):
        at += 1
        size -= 1
    if size != turn.b:
        return LEFT if size > turn.b else OK
    if at[0] < 0x80:
        return LEFT if memcmp(at, bound, size) > 0 else OK
    return LEFT if memcmp(at, bound + size, size) < 0 else OK


cdef int _turn_number(Translation *t, const TurnInstruction *turn) noexcept nogil:
    """Write an integer as a float or a double, or a float as a double."""
    cdef const uint8_t *start = t.run.at
    cdef int64_t value
    cdef float single
    cdef double number
    if turn.kind == ON_WIDEN:
        if t.run.end - start < 4:
            return LEFT
        memcpy(&single, start, 4)
        # Not every machine widens a NaN that signals as Python does.
        if single != single and not start[2] & 0x40:
            return LEFT
        t.run.at += 4
        number = single
    elif _pass_limited(t, turn, &value):
        return LEFT
    elif turn.kind == ON_TO_FLOAT:
        single = <float>value
        return _settle_to(t, start) or _give(t, <const uint8_t *>&single, 4)
    else:
        number = <double>value
    return _settle_to(t, start) or _give(t, <const uint8_t *>&number, 8)


cdef int _turn_enum(Translation *t, const TurnInstruction *turn) noexcept nogil:
    cdef const uint8_t *start = t.run.at
    cdef int64_t value
    cdef int32_t into
    if _pass_long(t, &value) or not 0 <= value < turn.b:
        return LEFT
    into = t.plan.indexes[turn.a + value]
    if into == value:
        return OK
    return LEFT if into < 0 else _settle_to(t, start) or _give_long(t, into)


cdef int _turn_union(Translation *t, const TurnInstruction *turn, int level) noexcept nogil:
    cdef const uint8_t *start = t.run.at
    cdef const int32_t *branch
    cdef int64_t value
    if _pass_long(t, &value) or not 0 <= value < turn.b:
        return LEFT
    branch = t.plan.indexes + 2 * (turn.a + value)
    if branch[1] != value:
        if _settle_to(t, start) or (branch[1] >= 0 and _give_long(t, branch[1])):
            return LEFT
    return _turn(t, branch[0], level)


cdef int _pass_block(
    Translation *t, bint is_weightless, bint rewrites, int64_t *read, int64_t *count, const uint8_t **stop
) noexcept nogil:
    """Read how many items come next, of which `read` have been; a count that says the block's size becomes a plain one.

    `stop` becomes the end of the block by its size, or NULL.
    """
    cdef const uint8_t *start = t.run.at
    cdef int64_t size
    cdef int64_t length = t.run.end - t.start
    cdef const TranslationProgram *plan = t.plan
    stop[0] = NULL
    if _pass_long(t, count):
        return LEFT
    if count[0] < 0:
        if _pass_long(t, &size) or not 0 <= size <= t.run.end - t.run.at:
            return LEFT
        stop[0] = t.run.at + size
        if count[0] < -length and (not is_weightless or count[0] < -plan.most_weightless):
            return LEFT
        count[0] = -count[0]
        if rewrites and (_settle_to(t, start) or _give_long(t, count[0])):
            return LEFT
    if is_weightless:
        if count[0] > plan.most_weightless - t.weightless:
            return LEFT
        t.weightless += count[0]
    else:
        if count[0] > t.run.end - t.run.at or count[0] > length - t.items:
            return LEFT
        t.items += count[0]
    if count[0] > plan.most_items - read[0]:
        return LEFT
    read[0] += count[0]
    return OK


cdef int _turn_items(Translation *t, const TurnInstruction *turn, int level) noexcept nogil:
    cdef int64_t read = 0, count, i
    cdef const uint8_t *stop
    cdef bint is_nothing = t.plan.code[turn.a].kind == ON_NOTHING
    if level > t.plan.most_levels:
        return LEFT
    while True:
        if _pass_block(t, turn.b, turn.c, &read, &count, &stop):
            return LEFT
        if count == 0:
            return OK
        if not is_nothing:
            for i in range(count):
                if _turn(t, turn.a, level):
                    return LEFT
        if stop != NULL and t.run.at != stop:
            return LEFT


cdef int _turn_entries(Translation *t, const TurnInstruction *turn, int level) noexcept nogil:
    cdef int64_t read = 0, count, i
    cdef Py_ssize_t size
    cdef uint32_t own
    cdef const uint8_t *stop
    if level > t.plan.most_levels:
        return LEFT
    t.run.object += 1
    own = t.run.object
    while True:
        if _pass_block(t, False, turn.b, &read, &count, &stop):
            return LEFT
        if count == 0:
            return OK
        for i in range(count):
            if _pass_size(t, &size) or not cdcavro_is_utf8(t.run.at - size, t.run.at):
                return LEFT
            if _add_name(&t.run, own, t.run.at - size, size) or _turn(t, turn.a, level):
                return LEFT
        if stop != NULL and t.run.at != stop:
            return LEFT


cdef int _turn_fields(Translation *t, const TurnInstruction *turn, int level) noexcept nogil:
    """Turn a record whose fields come in the order of the reader's."""
    cdef const Action *action = t.plan.actions + turn.a
    cdef const Action *end = action + turn.b
    if level > t.plan.most_levels:
        return LEFT
    while action < end:
        if action.kind == ON_FIELD:
            if _turn(t, action.first, level):
                return LEFT
        elif action.kind == ON_DEFAULT:
            if _settle(t) or _give(t, t.plan.texts + action.first, action.size):
                return LEFT
        elif _settle(t) or _turn(t, action.first, level):
            return LEFT
        else:
            t.kept = t.run.at
        action += 1
    return OK


cdef int _turn(Translation *t, int node, int level) noexcept nogil:
    """Read and check one datum by the instruction of its type; what is the reader's as it is stays to be written."""
    cdef const TurnInstruction *turn = t.plan.code + node
    cdef int64_t value
    cdef Py_ssize_t size
    if turn.kind == ON_STRING:
        return _pass_text(t)
    if turn.kind == ON_INTEGER:
        return _pass_limited(t, turn, &value)
    if turn.kind == ON_UNION:
        return _turn_union(t, turn, level)
    if turn.kind == ON_NOTHING:
        return OK
    if turn.kind == ON_TAKE:
        return _skip_bytes(&t.run, turn.a)
    if turn.kind == ON_BOOLEAN:
        return _skip_boolean(&t.run)
    if turn.kind == ON_BYTES:
        return _pass_size(t, &size)
    if turn.kind == ON_RECORD:
        return _turn_fields(t, turn, level + 1)
    if turn.kind == ON_ENUM:
        return _turn_enum(t, turn)
    if turn.kind == ON_INTO:
        return _settle(t) or _give_long(t, turn.a) or _turn(t, turn.b, level)
    if turn.kind == ON_TO_FLOAT or turn.kind == ON_TO_DOUBLE or turn.kind == ON_WIDEN:
        return _turn_number(t, turn)
    if turn.kind == ON_ARRAY:
        return _turn_items(t, turn, level + 1)
    if turn.kind == ON_MAP:
        return _turn_entries(t, turn, level + 1)
    if turn.kind == ON_DECIMAL:
        return _pass_decimal(t, turn, &size)
    if turn.kind == ON_REORDER:
        return _turn_reordered(t, turn, level + 1)
    return LEFT


# Records whose fields are in another order, and whole payloads.

cdef int _reserve_pieces(Translation *t, Py_ssize_t more) noexcept nogil:
    cdef Py_ssize_t room = t.piece_count + more
    cdef Piece *pieces
    if room > MOST_PIECES:
        return LEFT
    if room > t.pieces_room:
        room += room >> 1
        pieces = <Piece *>realloc(t.pieces, room * sizeof(Piece))
        if pieces == NULL:
            return LEFT
        t.pieces, t.pieces_room = pieces, room
    memset(t.pieces + t.piece_count, 0, more * sizeof(Piece))
    t.piece_count += more
    return OK


cdef int _turn_reordered(Translation *t, const TurnInstruction *turn, int level) noexcept nogil:
    """Turn a record whose fields come in another order: each is written as it comes, then put into its place."""
    cdef const Action *action = t.plan.actions + turn.a
    cdef const Action *end = action + turn.b
    cdef Py_ssize_t own = t.piece_count, origin, start, total = 0
    cdef Piece *piece
    if level > t.plan.most_levels or _settle(t) or _reserve_pieces(t, turn.c):
        return LEFT
    origin = t.run.size
    while action < end:
        if action.kind == ON_DEFAULT:
            piece = t.pieces + own + action.place
            piece.start, piece.stop, piece.is_stated = action.first, action.first + action.size, True
            total += action.size
        else:
            start = t.run.size
            if _turn(t, action.first, level):
                return LEFT
            if action.kind == ON_SKIP:
                t.kept = t.run.at
            elif _settle(t):
                return LEFT
            else:
                piece = t.pieces + own + action.place
                piece.start, piece.stop = start, t.run.size
                total += piece.stop - piece.start
        action += 1
    if total > t.plan.most_bytes - (origin - t.first) or _reserve(&t.run, total):
        return LEFT
    t.piece_count = own
    if total:
        _put_pieces(t, own, turn.c, origin)
    t.run.size = origin + total
    return OK


cdef void _put_pieces(Translation *t, Py_ssize_t first, int count, Py_ssize_t origin) noexcept nogil:
    """Put the pieces of a record in their order behind what is written, and from there to where the record begins."""
    cdef Py_ssize_t start = t.run.size
    cdef const Piece *piece
    cdef int i
    for i in range(count):
        piece = t.pieces + first + i
        memcpy(
            t.run.out + t.run.size,
            (t.plan.texts if piece.is_stated else t.run.out) + piece.start,
            piece.stop - piece.start,
        )
        t.run.size += piece.stop - piece.start
    memmove(t.run.out + origin, t.run.out + start, t.run.size - start)


cdef inline void _set_out(
    Translation *t, const TranslationProgram *plan, const uint8_t *start, Py_ssize_t size
) noexcept nogil:
    """Begin with a payload."""
    t.run.at, t.run.end = start, start + size
    t.run.named = t.run.object = 0
    t.run.run += 1
    if t.run.run == 0:
        memset(t.run.names, 0, t.run.names_room * sizeof(Name))
        t.run.run = 1
    t.plan, t.start, t.kept = plan, start, start
    t.first = t.run.size
    t.items = t.weightless = t.piece_count = 0


cdef int _translate(
    Translation *t, const TranslationProgram *plan, const uint8_t *start, Py_ssize_t size
) noexcept nogil:
    """Check a payload, and append it as the reader's schema has it; nothing is appended if it is that already."""
    cdef Py_ssize_t before = t.run.size
    _set_out(t, plan, start, size)
    if _turn(t, plan.root, 0) or t.run.at != t.run.end or (not plan.is_same and _settle(t)):
        t.run.size = before
        return LEFT
    return OK


# The state of a translation, as threads borrow it, and the translators of payloads and of whole columns, each of whose
# values may have a schema of its own.

cdef struct Prefix:  # of values, and the number of the schema that it stands for
    uint8_t text[32]
    Py_ssize_t size
    int32_t number


cdef struct Rows:  # a column, and beside it what is said of each value
    Column column
    Py_buffer numbers
    Py_buffer starts
    Py_buffer ends

# Those that no thread uses. They are borrowed and given back under the GIL.
cdef Translation *_idle[MOST_IDLE]

cdef int _idle_count = 0


cdef Translation *_borrow_translation() except NULL:
    """Return what one thread alone turns payloads with, with nothing written."""
    global _idle_count
    cdef Translation *t
    if _idle_count:
        _idle_count -= 1
        t = _idle[_idle_count]
    else:
        t = <Translation *>calloc(1, sizeof(Translation))
        if t == NULL:
            raise MemoryError
        t.run.names_room = FIRST_NAMES
        t.run.names = <Name *>calloc(FIRST_NAMES, sizeof(Name))
        if t.run.names == NULL:
            free(t)
            raise MemoryError
    t.run.size = 0
    return t


cdef void _return_translation(Translation *t) noexcept:
    """Let it wait for the next payload, unless it has much room or enough others wait."""
    global _idle_count
    cdef bint is_large = t.run.room > KEPT or t.run.names_room > KEPT >> 8 or t.pieces_room > KEPT >> 8
    if _idle_count < MOST_IDLE and not is_large:
        _idle[_idle_count] = t
        _idle_count += 1
        return
    free(t.run.out)
    free(t.run.names)
    free(t.pieces)
    free(t)


cdef Prefix *_prefix(Prefix *prefixes, uint32_t room, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Return the entry of a prefix, or the free one where it would be."""
    cdef uint64_t slot = cdcavro_hash(start, size) & (room - 1)
    while prefixes[slot].size and (prefixes[slot].size != size or memcmp(prefixes[slot].text, start, size) != 0):
        slot = (slot + 1) & (room - 1)
    return prefixes + slot


cdef class Translator:
    """What one program (`translation.program.Program`) does, for one payload at a time. Any threads may use it."""

    cdef TranslationProgram _plan
    cdef bytes _code, _actions, _indexes, _limits, _texts

    def __cinit__(self, program):
        cdef TranslationProgram *plan = &self._plan
        self._code, self._actions = program.code.tobytes(), program.actions.tobytes()
        self._indexes, self._limits, self._texts = program.indexes.tobytes(), program.limits.tobytes(), program.texts
        plan.code = <const TurnInstruction *>PyBytes_AS_STRING(self._code)
        plan.actions = <const Action *>PyBytes_AS_STRING(self._actions)
        plan.indexes = <const int32_t *>PyBytes_AS_STRING(self._indexes)
        plan.limits = <const int64_t *>PyBytes_AS_STRING(self._limits)
        plan.texts = <const uint8_t *>PyBytes_AS_STRING(self._texts)
        plan.root, plan.is_same = program.root, program.is_same
        plan.most_levels, plan.most_items, plan.most_weightless, plan.most_bytes = program.bounds

    def translate(self, bytes payload):
        """Return a writer's payload as the reader's, itself if both encode it alike; None where it is left."""
        cdef const uint8_t *start = _start(payload)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(payload)
        cdef Translation *t = _borrow_translation()
        cdef int left
        if size <= SHORT:
            left = _translate(t, &self._plan, start, size)
        else:
            with nogil:
                left = _translate(t, &self._plan, start, size)
        try:
            if left:
                return None
            return payload if self._plan.is_same else PyBytes_FromStringAndSize(<const char *>t.run.out, t.run.size)
        finally:
            _return_translation(t)


cdef class Translators:
    """Translators of the values of columns: a value's own is told by its prefix, or by a number beside it."""

    cdef dict _held
    cdef object _lock  # what a run reads, no other thread may change
    cdef const TranslationProgram **_plans
    cdef Py_ssize_t _plan_count
    cdef Prefix *_prefixes
    cdef uint32_t _prefix_room
    cdef uint32_t _prefix_count
    cdef Py_ssize_t _sizes[256]

    def __cinit__(self):
        self._held = {}
        self._lock = threading.Lock()
        self._prefix_room = 64
        self._prefixes = <Prefix *>calloc(self._prefix_room, sizeof(Prefix))
        if self._prefixes == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._plans)
        free(self._prefixes)

    def add(self, int32_t number, Translator translator not None, bytes prefix not None):
        """Let values with a prefix, or with a number beside them, be translated in a way."""
        cdef Py_ssize_t size = len(prefix)
        if number < 0 or size > MOST_PREFIX or (size and self._sizes[<uint8_t>prefix[0]] not in (0, size)):
            raise ValueError("a number from 0 on, and a prefix as long as others that begin alike")
        with self._lock:
            if size:
                self._add_prefix(number, <const uint8_t *>PyBytes_AS_STRING(prefix), size)
            self._add_plan(number, translator)

    cdef int _add_plan(self, Py_ssize_t number, Translator translator) except -1:
        cdef Py_ssize_t count = 2 * number + 2
        cdef const TranslationProgram **plans
        if number >= self._plan_count:
            plans = <const TranslationProgram **>realloc(self._plans, count * sizeof(void *))
            if plans == NULL:
                raise MemoryError
            memset(plans + self._plan_count, 0, (count - self._plan_count) * sizeof(void *))
            self._plans, self._plan_count = plans, count
        self._plans[number] = &translator._plan
        self._held[number] = translator
        return 0

    cdef int _add_prefix(self, int32_t number, const uint8_t *start, Py_ssize_t size) except -1:
        cdef Prefix *prefixes
        cdef Prefix *place
        cdef uint32_t i
        if self._prefix_count * 2 >= self._prefix_room:
            prefixes = <Prefix *>calloc(self._prefix_room * 2, sizeof(Prefix))
            if prefixes == NULL:
                raise MemoryError
            for i in range(self._prefix_room):
                place = self._prefixes + i
                if place.size:
                    _prefix(prefixes, self._prefix_room * 2, place.text, place.size)[0] = place[0]
            free(self._prefixes)
            self._prefixes, self._prefix_room = prefixes, self._prefix_room * 2
        place = _prefix(self._prefixes, self._prefix_room, start, size)
        self._prefix_count += place.size == 0
        memcpy(place.text, start, size)
        place.size, place.number = size, number
        self._sizes[start[0]] = size
        return 0

    cdef Py_ssize_t _known(self, const uint8_t *start, Py_ssize_t size, int32_t *number) noexcept nogil:
        """Return the length of a value's prefix, and the number of its schema, -1 if it is not known."""
        cdef Py_ssize_t length = self._sizes[start[0]] if size else 0
        cdef const Prefix *place
        number[0] = -1
        if 0 < length <= size:
            place = _prefix(self._prefixes, self._prefix_room, start, length)
            if place.size:
                number[0] = place.number
        return length

    cdef int _run_row(self, Translation *t, Rows *rows, Py_ssize_t i, bint is_framed, Py_ssize_t most) noexcept nogil:
        cdef Py_ssize_t at = rows.column.first + i, size, prefix = 0
        cdef const uint8_t *start = <const uint8_t *>rows.column.data.buf
        cdef int32_t *number = <int32_t *>rows.numbers.buf + i
        cdef int32_t offsets[2]
        cdef const TranslationProgram *plan
        (<int32_t *>rows.starts.buf)[i] = -1
        if rows.column.has_nulls and not (<const uint8_t *>rows.column.validity.buf)[at >> 3] >> (at & 7) & 1:
            if is_framed:
                number[0] = -1
            return OK
        memcpy(offsets, <const char *>rows.column.offsets.buf + 4 * at, 8)
        if not 0 <= offsets[0] <= offsets[1] <= rows.column.data.len:
            return LEFT
        start += offsets[0]
        size = offsets[1] - offsets[0]
        if is_framed:
            prefix = self._known(start, size, number)
        if not 0 <= number[0] < self._plan_count:
            return LEFT
        plan = self._plans[number[0]]
        if plan == NULL or size - prefix > most or _translate(t, plan, start + prefix, size - prefix):
            return LEFT
        (<int32_t *>rows.starts.buf)[i] = <int32_t>prefix + 1 if plan.is_same else 0
        return OK

    cdef Py_ssize_t _run(
        self, Translation *t, Rows *rows, Py_ssize_t i, bint is_framed,
        Py_ssize_t base, Py_ssize_t room, Py_ssize_t most,
    ) noexcept nogil:
        cdef Py_ssize_t before
        while i < rows.column.count:
            before = t.run.size
            if self._run_row(t, rows, i, is_framed, most):
                break
            if t.run.size > room - base:
                t.run.size = before
                break
            (<int32_t *>rows.ends.buf)[i] = <int32_t>(base + t.run.size)
            i += 1
        return i

    def by_prefix(self, column, said, Py_ssize_t first, Py_ssize_t base, tuple bounds):
        """Translate framed values of a column from an index on; return what is written, and the index of the one left.

        `said` has three arrays of 32-bit integers, one for each value, in which is written: the number of its schema;
        where in the value, counted from 1, the payload begins that is the reader's as it is, 0 if it is written, -1
        for a null; and where it ends in what is written, behind `base` bytes. `bounds` are the most bytes to write of
        all values, and the most of a payload.
        """
        return self._run_all(column, said, first, base, bounds, True)

    def by_number(self, column, said, Py_ssize_t first, Py_ssize_t base, tuple bounds):
        """Do as `by_prefix` with values that are payloads; the numbers of their schemas are said."""
        return self._run_all(column, said, first, base, bounds, False)

    cdef tuple _run_all(self, column, said, Py_ssize_t first, Py_ssize_t base, tuple bounds, bint is_framed):
        cdef Rows rows
        cdef Translation *t
        cdef Py_ssize_t room, most
        room, most = bounds
        if not 0 <= base <= room < <int64_t>1 << 31:
            raise ValueError("what is written has less than 2 GiB")
        _open_rows(&rows, column, said)
        try:
            if not 0 <= first <= rows.column.count:
                raise ValueError("the values of a column from an index on")
            with self._lock:
                t = _borrow_translation()
                with nogil:
                    first = self._run(t, &rows, first, is_framed, base, room, most)
                try:
                    return PyBytes_FromStringAndSize(<const char *>t.run.out, t.run.size), first
                finally:
                    _return_translation(t)
        finally:
            _close_rows(&rows)


cdef int _open_rows(Rows *rows, column, said) except -1:
    memset(rows, 0, sizeof(Rows))
    _open_column(&rows.column, column)
    try:
        PyObject_GetBuffer(said[0], &rows.numbers, PyBUF_WRITABLE)
        PyObject_GetBuffer(said[1], &rows.starts, PyBUF_WRITABLE)
        PyObject_GetBuffer(said[2], &rows.ends, PyBUF_WRITABLE)
        if min(rows.numbers.len, rows.starts.len, rows.ends.len) // 4 < rows.column.count:
            raise ValueError("a place for what is said of each value")
    except BaseException:
        _close_rows(rows)
        raise
    return 0


cdef void _close_rows(Rows *rows) noexcept:
    _close_column(&rows.column)
    PyBuffer_Release(&rows.numbers)
    PyBuffer_Release(&rows.starts)
    PyBuffer_Release(&rows.ends)


def payload_ends(Translator translator not None, bytes payloads not None, Py_ssize_t count):
    """Return where payloads end that stand one behind another, as 32-bit integers; None if one is left.

    The translator is one that checks them.
    """
    cdef const uint8_t *start = _start(payloads)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(payloads)
    cdef bytes ends
    cdef Translation *t
    cdef int32_t *places
    cdef Py_ssize_t i = 0
    if not 0 <= count <= size or size > INT32_MAX or not translator._plan.is_same:
        return None
    ends = PyBytes_FromStringAndSize(NULL, 4 * count)
    places = <int32_t *>PyBytes_AS_STRING(ends)
    t = _borrow_translation()
    with nogil:
        t.run.at = start
        while i < count:
            _set_out(t, &translator._plan, t.run.at, size - (t.run.at - start))
            if _turn(t, translator._plan.root, 0):
                break
            places[i] = <int32_t>(t.run.at - start)
            i += 1
        if i == count and t.run.at != start + size:
            i = -1
    _return_translation(t)
    return ends if i == count else None
