# Payload to payload: records in another order, and whole columns, each of whose values may have a schema of its own.

cdef enum:
    MOST_PIECES = 1 << 20
    MOST_PREFIX = 32
    MOST_IDLE = 4

cdef struct Prefix:  # of values, and the number of the schema that it stands for
    uint8_t text[32]
    Py_ssize_t size
    int32_t number

cdef struct Rows:  # a column, and beside it what is said of each value
    Column column
    Py_buffer numbers
    Py_buffer starts
    Py_buffer ends


cdef Prefix *_prefix(Prefix *prefixes, uint32_t room, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Return the entry of a prefix, or the free one where it would be."""
    cdef uint64_t slot = cdcavro_hash(start, size) & (room - 1)
    while prefixes[slot].size and (prefixes[slot].size != size or memcmp(prefixes[slot].text, start, size) != 0):
        slot = (slot + 1) & (room - 1)
    return prefixes + slot


cdef class Translator:
    """What one program (`translation.program.Program`) does, for one payload at a time. Any threads may use it."""

    cdef Plan _plan
    cdef bytes _code, _actions, _indexes, _limits, _texts

    def __cinit__(self, program):
        cdef Plan *plan = &self._plan
        self._code, self._actions = program.code.tobytes(), program.actions.tobytes()
        self._indexes, self._limits, self._texts = program.indexes.tobytes(), program.limits.tobytes(), program.texts
        plan.code = <const Turn *>PyBytes_AS_STRING(self._code)
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
        cdef Transit *t = _borrowed_transit()
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
            _give_back(t)


cdef class Translators:
    """Translators of the values of columns: a value's own is told by its prefix, or by a number beside it."""

    cdef dict _held
    cdef object _lock  # what a run reads, no other thread may change
    cdef const Plan **_plans
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
        cdef const Plan **plans
        if number >= self._plan_count:
            plans = <const Plan **>realloc(self._plans, count * sizeof(void *))
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

    cdef int _run_row(self, Transit *t, Rows *rows, Py_ssize_t i, bint is_framed, Py_ssize_t most) noexcept nogil:
        cdef Py_ssize_t at = rows.column.first + i, size, prefix = 0
        cdef const uint8_t *start = <const uint8_t *>rows.column.data.buf
        cdef int32_t *number = <int32_t *>rows.numbers.buf + i
        cdef int32_t offsets[2]
        cdef const Plan *plan
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
        self, Transit *t, Rows *rows, Py_ssize_t i, bint is_framed, Py_ssize_t base, Py_ssize_t room, Py_ssize_t most
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
        """Translate framed values of a column from an index on; return what is written, and the index of one that is left.

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
        cdef Transit *t
        cdef Py_ssize_t room, most
        room, most = bounds
        if not 0 <= base <= room < <int64_t>1 << 31:
            raise ValueError("what is written has less than 2 GiB")
        _open_rows(&rows, column, said)
        try:
            if not 0 <= first <= rows.column.count:
                raise ValueError("the values of a column from an index on")
            with self._lock:
                t = _borrowed_transit()
                with nogil:
                    first = self._run(t, &rows, first, is_framed, base, room, most)
                try:
                    return PyBytes_FromStringAndSize(<const char *>t.run.out, t.run.size), first
                finally:
                    _give_back(t)
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


# Those that no thread uses. They are borrowed and given back under the GIL.
cdef Transit *_idle[MOST_IDLE]
cdef int _idle_count = 0


cdef Transit *_borrowed_transit() except NULL:
    """Return what one thread alone turns payloads with, with nothing written."""
    global _idle_count
    cdef Transit *t
    if _idle_count:
        _idle_count -= 1
        t = _idle[_idle_count]
    else:
        t = <Transit *>calloc(1, sizeof(Transit))
        if t == NULL:
            raise MemoryError
        t.run.names_room = FIRST_NAMES
        t.run.names = <Name *>calloc(FIRST_NAMES, sizeof(Name))
        if t.run.names == NULL:
            free(t)
            raise MemoryError
    t.run.size = 0
    return t


cdef void _give_back(Transit *t) noexcept:
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
