# The engine of typed rows: one message, a column, or the lines of a text; and rows in groups, those of each table's
# version together.


cdef enum:
    COMMON_OF_MARK = 600  # more than any change of MOST_MARK bytes repeats in rows


cdef class RowEngine(Engine):
    """Turns messages of one format into typed rows, of the patterns that it was given. One thread at a time uses it.

    Made from the format's program; `words` are the texts that stand for values which the source did not give, `zone`
    (array of int) the pieces of the source's time zone: when each begins and ends in local time, and how far it is
    ahead of UTC, in microseconds. With `is_ordered`, rows have order values, and a message that has none is left. With
    `of_changes`, messages are payloads of `change.avsc`, whose program it is, and say themselves where they arrived.
    With `of_lines`, a message is the lines of its rows, as `ProtobufReader.column` returns them. Patterns of an ordered
    one are its own, and no other engine's.
    """

    cdef Typing typing
    cdef Pattern **patterns
    cdef Py_ssize_t pattern_room
    cdef list kept
    cdef Py_ssize_t kept_size
    cdef bytes words
    cdef bytes word_ends
    cdef bytes zone
    cdef bytes head
    cdef bytes kept_of_head
    cdef bint is_busy

    def __cinit__(self, program, tuple words=(), zone=b"", bint is_ordered=False, bint of_changes=False,
                  bint of_lines=False):
        cdef Typing *t = &self.typing
        t.is_change, t.is_lined, t.has_numbers = of_changes, of_lines, is_ordered
        ends, size = array("i"), 0
        for word in words:
            size += len(word)
            ends.append(size)
        self.words, self.word_ends, self.zone = b"".join(words), ends.tobytes(), bytes(zone)
        t.words, t.word_count = _start(self.words), len(words)
        t.word_ends = <const int32_t *>PyBytes_AS_STRING(self.word_ends)
        t.zone, t.zones = <const int64_t *>PyBytes_AS_STRING(self.zone), len(self.zone) // 24
        t.run = self._new_run()
        t.fixed = <Run *>calloc(1, sizeof(Run))
        t.keys = <Run *>calloc(1, sizeof(Run))
        t.payloads = <Run *>calloc(1, sizeof(Run))
        t.said = <Run *>calloc(1, sizeof(Run))
        self.pattern_room = 64
        self.patterns = <Pattern **>calloc(self.pattern_room, sizeof(Pattern *))
        self.kept = []
        self.head = self.kept_of_head = b""
        _open_order(&t.order, is_ordered)
        if t.fixed == NULL or t.keys == NULL or t.payloads == NULL or t.said == NULL or self.patterns == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef Typing *t = &self.typing
        if self.patterns != NULL:
            self._drop()
        free(self.patterns)
        _tear_down(t.run)
        _tear_down(t.fixed)
        _tear_down(t.keys)
        _tear_down(t.payloads)
        _tear_down(t.said)
        _forget_large(t)
        _close_order(&t.order)
        free(t.before)
        free(t.after)
        free(t.starts)
        free(t.made)

    cdef void _drop(self) noexcept:
        cdef Py_ssize_t i
        for i in range(self.pattern_room):
            if self.patterns[i] != NULL:
                free(self.patterns[i].index)
                free(self.patterns[i].follows)
                free(self.patterns[i])
                self.patterns[i] = NULL

    def clear(self):
        """Forget all patterns."""
        self._alone()
        self._drop()
        _forget_large(&self.typing)
        self.kept = []
        self.head = self.kept_of_head = b""
        self.kept_size = 0

    def drop_last(self):
        """Take back the pattern that was added last: no message is of it."""
        cdef Py_ssize_t i
        for i in range(self.pattern_room):
            if self.patterns[i] != NULL and self.patterns[i].number == len(self.kept) - 1:
                self.patterns[i].fixed_size = -1

    def pattern(self, bytes message):
        """Return what a message has in common with others of its pattern; None if it has none."""
        cdef Typing *t = &self.typing
        self._alone()
        try:
            if _gather_message(t, _start(message), PyBytes_GET_SIZE(message)):
                return None
            return PyBytes_FromStringAndSize(<const char *>t.fixed.out, t.fixed.size)
        finally:
            self._shrink_all()

    def has(self, bytes fixed not None):
        """Return whether a pattern was added, and not taken back."""
        self._alone()
        return _find(self.patterns, self.pattern_room, _start(fixed), PyBytes_GET_SIZE(fixed)) != NULL

    def add(self, bytes fixed, program):
        """Add a pattern, whose messages are of one version of a table; return whether there is room for it."""
        cdef Pattern *p
        # The index of cells takes about as much as the cells.
        cdef Py_ssize_t size = len(fixed) + len(program.texts) + 8 * len(program.cells) + 8 * len(program.longs)
        self._alone()
        if len(self.kept) >= MOST_PATTERNS or self.kept_size + size > MOST_KEPT:
            return False
        if 2 * (len(self.kept) + 1) > self.pattern_room:
            self._widen()
        p = <Pattern *>calloc(1, sizeof(Pattern))
        if p == NULL:
            raise MemoryError
        parts = (fixed, program.cells.tobytes(), program.longs.tobytes(), program.symbols.tobytes(), program.texts,
                 program.key.tobytes(), program.same.tobytes(), program.head, program.place)
        _fill(p, parts, program)
        p.number = <int32_t>len(self.kept)
        p.facts.zone, p.facts.zones = self.typing.zone, self.typing.zones
        if _index_cells(p):
            raise MemoryError
        self.kept.append(parts)
        self.kept_size += size
        _enter(self.patterns, self.pattern_room, p)
        return True

    cdef int _widen(self) except -1:
        cdef Pattern **wider = <Pattern **>calloc(4 * self.pattern_room, sizeof(Pattern *))
        cdef Py_ssize_t i
        if wider == NULL:
            raise MemoryError
        for i in range(self.pattern_room):
            if self.patterns[i] != NULL:
                _enter(wider, 4 * self.pattern_room, self.patterns[i])
        free(self.patterns)
        self.patterns = wider
        self.pattern_room *= 4
        return 0

    cdef int _take(self, const uint8_t *start, Py_ssize_t size, int32_t number) noexcept nogil:
        """Append the rows of a message, or none if it is left."""
        cdef Typing *t = &self.typing
        cdef Py_ssize_t keys = t.keys.size, payloads = t.payloads.size, made = t.made_count, orders = t.order.made.size
        cdef int64_t count
        t.order.is_moving = False
        while True:
            t.most_absent, t.order.moves = 0, False
            if (self._take_lines(start, size, number) if t.is_lined else self._take_one(start, size, number)) == OK:
                count = t.line_row if t.is_lined else t.made_count - made
                if t.made_count > made and (count == 1 or count * t.most_absent <= MOST_ABSENT):
                    return OK
            t.keys.size, t.payloads.size, t.made_count, t.order.made.size = keys, payloads, made, orders
            if t.order.is_moving or not t.order.moves:
                return LEFT
            # All rows of the message have another time in its lane then.
            t.order.is_moving = True

    cdef int _take_one(self, const uint8_t *start, Py_ssize_t size, int32_t number) noexcept nogil:
        cdef Typing *t = &self.typing
        cdef Pattern *p
        if _gather_message(t, start, size):
            return LEFT
        p = _find(self.patterns, self.pattern_room, t.fixed.out, t.fixed.size)
        if p == NULL:
            return LEFT
        t.common = p.weight + t.loose + 1
        return _type_message(t, p, number)

    cdef int _take_lines(self, const uint8_t *start, Py_ssize_t size, int32_t number) noexcept nogil:
        """Append the rows of all lines; stop where they may be too many for what each repeats of the first change."""
        cdef Typing *t = &self.typing
        cdef const uint8_t *at = start
        cdef const uint8_t *end = start + size
        cdef const uint8_t *stop
        cdef Py_ssize_t common = 0
        cdef uint64_t row
        t.line_row = 0
        while at < end:
            stop = <const uint8_t *>memchr(at, NEWLINE, end - at)
            if stop == NULL:
                return LEFT
            row, t.common = t.row, COMMON_OF_MARK
            if stop > at and self._take_one(at, stop - at, number):
                return LEFT
            common = t.common if at == start else common
            t.line_row += <int64_t>(t.row - row) if stop > at else 1
            at = stop + 1
        if t.line_row > MOST_ROWS or (t.line_row > 1 and t.line_row > (4 << 20) // common):
            return LEFT
        return OK

    def survey(self, bytes message, dict rules):
        """Return the pattern of a message, its position's numbers, and the names of the columns in its rows.

        `rules` has the rule of each pattern's numbers, which compare as bytes: a 1 and eight bytes for each; no bytes
        if there are none. Names and numbers are None of a pattern without a rule, or where they are left; so are the
        names if a value may be one that the source did not give. None for a message without a pattern.
        """
        self._alone()
        try:
            return _survey_message(&self.typing, message, rules)
        finally:
            self._shrink_all()

    cdef int _begin_head(self, bytes head) except -1:
        """Let a mark stand for a head, unless this has no schema that can be part of a pattern."""
        cdef Typing *t = &self.typing
        if head != self.head:
            self.head, self.kept_of_head = head, b""
            if _keep_head(t, _start(head), PyBytes_GET_SIZE(head)) == OK:
                self.kept_of_head = PyBytes_FromStringAndSize(<const char *>t.fixed.out, t.fixed.size)
        t.head, t.head_size = _start(self.kept_of_head), PyBytes_GET_SIZE(self.kept_of_head)
        t.run.has_head = t.head_size > 0
        t.run.head_size = PyBytes_GET_SIZE(head)
        return 0

    def take_column(self, column, places, Py_ssize_t first, Py_ssize_t most, clock=None, bytes head=b"",
                    bint is_read=False):
        """Append the rows of the messages in a column (`Slices`) from an index on to those that were made.

        Return the index of the first message that is left, or the number of all. It stops, too, behind the message with
        which more than `most` bytes are made, and returns whether it did so with messages to come. `places` is None, or
        a column of the same length with encoded fields of `source` that say where each message arrived. A null has no
        rows. `clock` (`Clock`) has the times of lanes before, and gets those after. In brief texts, `MARK` stands for
        `head`. With `is_read`, the messages are what `EnvelopeEngine.read_column` made of envelopes with that head.
        """
        cdef Column values, told
        cdef Ordering *order = &self.typing.order
        cdef Lanes lanes = Lanes(clock)
        cdef bint is_full = False
        cdef bint has_places = places is not None
        self._alone()
        _open_column(&values, column)
        try:
            if has_places:
                _open_column(&told, places)
            try:
                if not 0 <= first <= values.count or values.count > INT32_MAX:
                    raise ValueError("the messages from an index on")
                if has_places and told.count != values.count:
                    raise ValueError("as many places as messages")
                self._begin_head(head)
                self.typing.is_read = is_read
                self.is_busy, order.has_clock = True, clock is not None
                _forget_lanes(order)
                while True:
                    order.is_unknown = False
                    with nogil:
                        first = self._take_column(&values, &told if has_places else NULL, first, most, &is_full)
                    if not order.is_unknown:
                        break
                    lanes.meet(order)
                lanes.settle(order)
            finally:
                self.is_busy = order.has_clock = self.typing.run.has_head = self.typing.is_read = False
                self.typing.run.head_size = 0
                if has_places:
                    _close_column(&told)
        finally:
            _close_column(&values)
        return first, is_full

    cdef Py_ssize_t _take_column(
        self, const Column *values, const Column *places, Py_ssize_t i, Py_ssize_t most, bint *is_full
    ) noexcept nogil:
        cdef Typing *t = &self.typing
        cdef Py_ssize_t keys, payloads, made, orders
        cdef ColumnValue message, place
        while i < values.count:
            keys, payloads, made, orders = t.keys.size, t.payloads.size, t.made_count, t.order.made.size
            if _column_value(values, i, &message):
                return i
            place.start = NULL
            if places != NULL and _column_value(places, i, &place):
                return i
            t.place = <const uint8_t *>NO_PLACE if place.start == NULL else place.start
            t.place_size = 5 if place.start == NULL else place.size
            if message.start != NULL:
                if self._take(message.start, message.size, <int32_t>i):
                    return i
                if t.keys.size > INT32_MAX or t.payloads.size > INT32_MAX or t.order.made.size > INT32_MAX:
                    t.keys.size, t.payloads.size, t.made_count, t.order.made.size = keys, payloads, made, orders
                    return i
                _advance(t)
            i += 1
            if t.keys.size + t.payloads.size + t.order.made.size > most and i < values.count:
                is_full[0] = True
                return i
        return i

    def taken(self):
        """Return the rows of columns that were made since the last time, as columns themselves.

        The index of the message and the number of the pattern of each row, as 32-bit integers, the latter greater by
        the number of all patterns for the delete of a key that an update moves away, and by twice that for the insert;
        a bit for each row that has a key; where each key ends, from 0 on, and the keys; where each payload ends, and
        the payloads. If they are ordered, then where each order value ends, and the order values; a bit for each row
        that lacks columns.
        """
        cdef Typing *t = &self.typing
        self._alone()
        made = _made_rows(t, <int32_t>len(self.kept)) + (_made_orders(t) if t.order.is_asked else ())
        t.keys.size = t.payloads.size = t.made_count = t.order.made.size = 0
        self._shrink_all()
        return made

    cdef int _alone(self) except -1:
        """Raise `RuntimeError` if another thread takes a column."""
        if self.is_busy:
            raise RuntimeError("one thread at a time uses an engine of rows")
        return 0

    def rows(self, bytes message, bytes place):
        """Return the rows of a message: pattern, key (None if there is none) and envelope of each; None if it is left.

        `place` are the encoded fields of `source` that say where the message arrived, beside what it says itself. If
        they are ordered, also the order value without a clock, and whether it lacks columns.
        """
        cdef Typing *t = &self.typing
        cdef Py_ssize_t i, key = t.keys.size, payload = t.payloads.size, before = t.made_count
        cdef Py_ssize_t keys = key, payloads = payload, order = t.order.made.size, orders = order
        cdef MadeRow *made
        self._alone()
        t.place, t.place_size = _start(place), PyBytes_GET_SIZE(place)
        if self._take(_start(message), PyBytes_GET_SIZE(message), 0):
            self._shrink_all()
            return None
        rows = []
        for i in range(before, t.made_count):
            made = t.made + i
            row = (
                made.pattern + made.part * <int>len(self.kept),
                PyBytes_FromStringAndSize(<const char *>t.keys.out + key, made.key - key) if made.is_keyed else None,
                PyBytes_FromStringAndSize(<const char *>t.payloads.out + payload, made.payload - payload),
            )
            if t.order.is_asked:
                row += PyBytes_FromStringAndSize(<const char *>t.order.made.out + order, made.order - order), made.lacks
            rows.append(row)
            key, payload, order = made.key, made.payload, made.order
        # The rows of columns that wait to be taken stay as they are.
        t.keys.size, t.payloads.size, t.made_count, t.order.made.size = keys, payloads, before, orders
        self._shrink_all()
        return rows

    cdef void _shrink_all(self) noexcept:
        """Give back much room, but for that of the rows of columns that wait to be taken."""
        _shrink(self.typing.run)
        _shrink(self.typing.fixed)
        _shrink(self.typing.said)
        _shrink_order(&self.typing.order, self.typing.made_count > 0)
        if self.typing.made_count == 0:
            _shrink(self.typing.keys)
            _shrink(self.typing.payloads)


cdef tuple _made_rows(Typing *t, int32_t known):
    """Return the rows that were made as columns; so many patterns are known."""
    cdef Py_ssize_t count = t.made_count, i
    cdef bytes messages = PyBytes_FromStringAndSize(NULL, count * sizeof(int32_t))
    cdef bytes patterns = PyBytes_FromStringAndSize(NULL, count * sizeof(int32_t))
    cdef bytes keys = PyBytes_FromStringAndSize(NULL, (count + 1) * sizeof(int32_t))
    cdef bytes payloads = PyBytes_FromStringAndSize(NULL, (count + 1) * sizeof(int32_t))
    cdef bytes keyed = bytes((count + 7) // 8)
    cdef char *message = PyBytes_AS_STRING(messages)
    cdef char *pattern = PyBytes_AS_STRING(patterns)
    cdef char *key = PyBytes_AS_STRING(keys)
    cdef char *payload = PyBytes_AS_STRING(payloads)
    cdef char *bits = PyBytes_AS_STRING(keyed)
    cdef const MadeRow *made
    cdef int32_t end = 0
    memcpy(key, &end, 4)
    memcpy(payload, &end, 4)
    for i in range(count):
        made = t.made + i
        memcpy(message + 4 * i, &made.message, 4)
        end = made.pattern + made.part * known
        memcpy(pattern + 4 * i, &end, 4)
        end = <int32_t>made.key
        memcpy(key + 4 * i + 4, &end, 4)
        end = <int32_t>made.payload
        memcpy(payload + 4 * i + 4, &end, 4)
        if made.is_keyed:
            bits[i >> 3] = <char>(bits[i >> 3] | 1 << (i & 7))
    return (
        messages, patterns, keyed,
        keys, PyBytes_FromStringAndSize(<const char *>t.keys.out, t.keys.size),
        payloads, PyBytes_FromStringAndSize(<const char *>t.payloads.out, t.payloads.size),
    )


cdef struct LineBatch:  # lines from a position on, and which of them were left
    Py_ssize_t position
    int32_t count
    int32_t *left
    int64_t *places  # where the lines that were left begin
    Py_ssize_t left_count
    Py_ssize_t left_room
    uint8_t *place  # the encoded fields that say where a line is, up to its number
    Py_ssize_t place_size


cdef int _leave_line(LineBatch *lines) noexcept nogil:
    """Note that a line is left."""
    cdef Py_ssize_t room = 2 * lines.left_room + 64
    cdef void *kept
    if lines.left_count == lines.left_room:
        kept = realloc(lines.left, room * sizeof(int32_t))
        if kept == NULL:
            return LEFT
        lines.left = <int32_t *>kept
        kept = realloc(lines.places, room * sizeof(int64_t))
        if kept == NULL:
            return LEFT
        lines.places = <int64_t *>kept
        lines.left_room = room
    lines.left[lines.left_count] = lines.count
    lines.places[lines.left_count] = lines.position
    lines.left_count += 1
    return OK


cdef int _pass_lines(
    RowEngine engine, const uint8_t *start, Py_ssize_t size, LineBatch *lines, int64_t number, Py_ssize_t most
) noexcept nogil:
    """Append the rows of lines until more than `most` bytes are made; stop, too, where there is no room to go on."""
    cdef Typing *t = &engine.typing
    cdef const uint8_t *line
    cdef const uint8_t *end
    t.place = lines.place
    while lines.count < INT32_MAX and t.keys.size + t.payloads.size <= most:
        line = start + lines.position
        end = <const uint8_t *>memchr(line, NEWLINE, size - lines.position)
        if end == NULL:
            return OK
        t.place_size = lines.place_size + cdcavro_varint(lines.place + lines.place_size, <uint64_t>number << 1)
        if engine._take(line, end - line, lines.count) and _leave_line(lines):
            return LEFT
        if t.keys.size > INT32_MAX or t.payloads.size > INT32_MAX:
            return LEFT
        lines.position = end + 1 - start
        lines.count += 1
        number += 1
    return OK


def take_lines(RowEngine engine not None, bytes raw not None, Py_ssize_t position, bytes place not None, number, most):
    """Return the rows of the lines of a text from a position on, as `RowEngine.taken` does, and which lines were left.

    `place` are the encoded fields of `source` that say where a line is, without its number, which comes last and is
    counted from `number` on. Also returned are how many lines were passed, those without a line end not among them, and
    the position behind them; of the lines that were left, the index as a 32-bit integer, and the position as one of 64
    bits. It stops behind the line with which more than `most` bytes are made.
    """
    cdef LineBatch lines
    cdef int64_t first = number
    cdef Py_ssize_t size = PyBytes_GET_SIZE(raw), bound = most
    cdef const uint8_t *start = _start(raw)
    cdef int stopped
    if not 0 <= position <= size or not 0 <= first < LARGEST >> 1 or not 0 <= bound < INT32_MAX:
        raise ValueError("a position in the text, the number of a line and a bound")
    engine._alone()
    memset(&lines, 0, sizeof(LineBatch))
    lines.position, lines.place_size = position, PyBytes_GET_SIZE(place)
    try:
        lines.place = <uint8_t *>malloc(lines.place_size + VARINT)
        if lines.place == NULL:
            raise MemoryError
        memcpy(lines.place, _start(place), lines.place_size)
        engine.is_busy = True
        with nogil:
            stopped = _pass_lines(engine, start, size, &lines, first, bound)
        engine.is_busy = False
        made = engine.taken()
        if stopped:
            raise MemoryError
        return (
            made, lines.count, lines.position,
            PyBytes_FromStringAndSize(<const char *>lines.left, lines.left_count * sizeof(int32_t)),
            PyBytes_FromStringAndSize(<const char *>lines.places, lines.left_count * sizeof(int64_t)),
        )
    finally:
        engine.is_busy = False
        free(lines.place)
        free(lines.left)
        free(lines.places)


def grouped(bytes patterns not None, bytes ends not None, bytes payloads not None, bytes groups not None,
            Py_ssize_t first, Py_ssize_t last):
    """Return the payloads of the rows from `first` up to `last` in groups, which come in the order of their first rows.

    Patterns, ends and payloads are as `RowEngine.taken` returns them, `groups` has the number of each pattern's group;
    all numbers are 32-bit integers. Of each group: its number, its payloads, and where each of them ends, from 0 on.
    """
    cdef const int32_t *pattern = <const int32_t *>PyBytes_AS_STRING(patterns)
    cdef const int32_t *end = <const int32_t *>PyBytes_AS_STRING(ends)
    cdef const int32_t *group = <const int32_t *>PyBytes_AS_STRING(groups)
    cdef const char *payload = PyBytes_AS_STRING(payloads)
    cdef Py_ssize_t known = PyBytes_GET_SIZE(groups) // 4, i, size
    cdef dict slots = {}
    cdef list made = []
    cdef bytes room = bytes(24 * max(known, 1))
    cdef int64_t *sizes = <int64_t *>PyBytes_AS_STRING(room)  # of each group the bytes, the rows and where they go
    cdef int64_t *counts = sizes + known
    cdef int64_t *slot = counts + known
    cdef int32_t one
    if not 0 <= first <= last <= PyBytes_GET_SIZE(patterns) // 4 or PyBytes_GET_SIZE(ends) // 4 <= last:
        raise ValueError("rows that there are")
    if end[first] < 0 or end[last] > PyBytes_GET_SIZE(payloads):
        raise ValueError("payloads that there are")
    for i in range(first, last):
        if not 0 <= pattern[i] < known or not 0 <= group[pattern[i]] < known or end[i + 1] < end[i]:
            raise ValueError("rows of known patterns")
        one = group[pattern[i]]
        if counts[one] == 0:
            slot[one] = len(slots)
            slots[one] = None
        counts[one] += 1
        sizes[one] += end[i + 1] - end[i]
    for number in slots:
        one = number
        found = PyBytes_FromStringAndSize(NULL, sizes[one]), PyBytes_FromStringAndSize(NULL, 4 * counts[one])
        made.append((one, *found))
        sizes[one] = counts[one] = 0
    for i in range(first, last):
        one = group[pattern[i]]
        size = end[i + 1] - end[i]
        memcpy(PyBytes_AS_STRING(made[slot[one]][1]) + sizes[one], payload + end[i], size)
        sizes[one] += size
        (<int32_t *>PyBytes_AS_STRING(made[slot[one]][2]))[counts[one]] = <int32_t>sizes[one]
        counts[one] += 1
    return made
