# Surveys, before tables are known: which messages of a column state what others state as well, and which of these comes
# first; and facts, in which messages of one operation and table are alike.


cdef enum:
    MOST_ALIKE = 100000
    MOST_SAID = 1 << 26  # bytes of all that is kept of messages that are alike

cdef struct Alike:  # messages that state the same about tables
    uint64_t hash
    uint8_t *said  # their pattern, where they arrived, and the names of their columns
    Py_ssize_t size
    uint8_t *order  # of the first of them
    Py_ssize_t order_size
    int32_t first  # its index in the column; -1 if that is another column
    bint is_mixed  # they are not alike after all


cdef class SurveyEngine(RowEngine):
    """Tells which messages of a column state the same about tables, of the patterns that it was given.

    One thread at a time uses it. Of each pattern's program it needs what tells the order of its messages.
    """

    cdef Alike *alike
    cdef int32_t alike_count
    cdef int32_t alike_room
    cdef int32_t *places  # of the alike, an open table of their numbers from 1 on
    cdef uint32_t places_room
    cdef Py_ssize_t said_size
    cdef int32_t *each  # of each message of the column, the number of what it is like; -1 for what was left
    cdef Py_ssize_t each_count

    def __cinit__(self, *_, **__):
        self.alike_room, self.places_room = 64, 256
        self.alike = <Alike *>calloc(self.alike_room, sizeof(Alike))
        self.places = <int32_t *>calloc(self.places_room, sizeof(int32_t))
        if self.alike == NULL or self.places == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef int32_t i
        for i in range(self.alike_count):
            free(self.alike[i].said)
            free(self.alike[i].order)
        free(self.alike)
        free(self.places)
        free(self.each)

    def take_alike(self, column, places, Py_ssize_t first):
        """Survey the messages of a column (`Slices`) from an index on, and return that of the first which is left.

        `places` are as in `take_column`. A null is passed by.
        """
        cdef Column values, told
        cdef bint has_places = places is not None
        self._alone()
        _open_column(&values, column)
        try:
            if not 0 <= first <= values.count or values.count > INT32_MAX:
                raise ValueError("the messages from an index on")
            if first == 0:
                self._begin(values.count)
            if values.count > self.each_count:
                raise ValueError("a column is surveyed from its beginning on")
            if has_places:
                _open_column(&told, places)
            try:
                if has_places and told.count != values.count:
                    raise ValueError("as many places as messages")
                self.is_busy = True
                with nogil:
                    first = self._take_alike(&values, &told if has_places else NULL, first)
            finally:
                self.is_busy = False
                if has_places:
                    _close_column(&told)
        finally:
            _close_column(&values)
            self._shrink_all()
        return first

    cdef int _begin(self, Py_ssize_t count) except -1:
        """Begin a column of so many messages."""
        cdef int32_t *each = <int32_t *>realloc(self.each, (count + 1) * sizeof(int32_t))
        cdef int32_t i
        if each == NULL:
            raise MemoryError
        memset(each, 255, (count + 1) * sizeof(int32_t))
        self.each, self.each_count = each, count
        for i in range(self.alike_count):
            self.alike[i].first = -1
        return 0

    cdef Py_ssize_t _take_alike(self, const Column *values, const Column *places, Py_ssize_t i) noexcept nogil:
        cdef Typing *t = &self.typing
        cdef ColumnValue message, place
        while i < values.count:
            if _column_value(values, i, &message):
                return i
            place.start = NULL
            if places != NULL and _column_value(places, i, &place):
                return i
            t.place = <const uint8_t *>NO_PLACE if place.start == NULL else place.start
            t.place_size = 5 if place.start == NULL else place.size
            if message.start != NULL and self._survey(message.start, message.size, <int32_t>i):
                return i
            i += 1
        return i

    cdef int _survey(self, const uint8_t *start, Py_ssize_t size, int32_t index) noexcept nogil:
        """Note what a message is like, and whether it is the first of its kind."""
        cdef Typing *t = &self.typing
        cdef Run *said = t.said
        cdef const Pattern *p
        cdef Alike *alike
        cdef Py_ssize_t key
        cdef int32_t number
        if _gather_message(t, start, size):
            return LEFT
        p = _find(self.patterns, self.pattern_room, t.fixed.out, t.fixed.size)
        if p == NULL or _take_facts(t, p.position):
            return LEFT
        t.lacks_nulls = not t.is_change and _lacks_nulls(t, p)
        said.size = 0
        if _put_lane(t, p, said) or _put_all_names(t, said):
            return LEFT
        key = said.size
        if _put_place_in_order(t, p, said):
            return LEFT
        number = self._number_alike(said.out, key)
        if number < 0:
            return LEFT
        alike = self.alike + number
        if alike.is_mixed:
            return LEFT
        self.each[index] = number
        if alike.order != NULL and not _is_before(said.out + key, said.size - key, alike.order, alike.order_size):
            return OK
        return self._put_first(alike, said.out + key, said.size - key, index)

    cdef int _put_first(self, Alike *alike, const uint8_t *order, Py_ssize_t size, int32_t index) noexcept nogil:
        cdef uint8_t *kept = <uint8_t *>realloc(alike.order, size + 1)
        if kept == NULL:
            return LEFT
        memcpy(kept, order, size)
        self.said_size += size - alike.order_size
        alike.order, alike.order_size, alike.first = kept, size, index
        return OK

    cdef int32_t _number_alike(self, const uint8_t *key, Py_ssize_t size) noexcept nogil:
        """Return the number of what a message is like, a new one if it is like no other; -1 if there is no room.

        There is none either among many whose hashes are alike: names can be made so that they are.
        """
        cdef uint64_t hash = cdcavro_hash(key, size)
        cdef uint32_t slot = <uint32_t>hash & (self.places_room - 1)
        cdef Alike *alike
        cdef int probes = 0
        while self.places[slot]:
            alike = self.alike + self.places[slot] - 1
            if alike.hash == hash and alike.size == size and memcmp(alike.said, key, size) == 0:
                return self.places[slot] - 1
            probes += 1
            if probes > MOST_PROBES:
                return -1
            slot = (slot + 1) & (self.places_room - 1)
        if self.alike_count >= MOST_ALIKE or self.said_size + size > MOST_SAID or self._widen_alike():
            return -1
        alike = self.alike + self.alike_count
        memset(alike, 0, sizeof(Alike))
        alike.said = <uint8_t *>malloc(size + 1)
        if alike.said == NULL:
            return -1
        memcpy(alike.said, key, size)
        alike.hash, alike.size, alike.first = hash, size, -1
        self.said_size += size
        self.alike_count += 1
        self._enter_alike(self.alike_count)
        return self.alike_count - 1

    cdef void _enter_alike(self, int32_t number) noexcept nogil:
        cdef uint32_t slot = <uint32_t>self.alike[number - 1].hash & (self.places_room - 1)
        while self.places[slot]:
            slot = (slot + 1) & (self.places_room - 1)
        self.places[slot] = number

    cdef int _widen_alike(self) noexcept nogil:
        """Make room for one more."""
        cdef void *kept
        cdef int32_t i
        if self.alike_count == self.alike_room:
            kept = realloc(self.alike, 2 * self.alike_room * sizeof(Alike))
            if kept == NULL:
                return LEFT
            self.alike, self.alike_room = <Alike *>kept, 2 * self.alike_room
        if <uint32_t>self.alike_count * 2 >= self.places_room:
            kept = calloc(4 * self.places_room, sizeof(int32_t))
            if kept == NULL:
                return LEFT
            free(self.places)
            self.places, self.places_room = <int32_t *>kept, 4 * self.places_room
            for i in range(self.alike_count):
                self._enter_alike(i + 1)
        return OK

    def firsts(self):
        """Return the number of what messages have in common, and the index of their first, where this column has it.

        Each is told once.
        """
        cdef int32_t i
        self._alone()
        found = []
        for i in range(self.alike_count):
            if self.alike[i].first >= 0:
                found.append((i, self.alike[i].first))
                self.alike[i].first = -1
        return found

    def mixed(self, int32_t number):
        """Return the indexes of messages that are not alike after all; from now on such messages are left."""
        self._alone()
        if not 0 <= number < self.alike_count:
            raise ValueError("the number of what messages have in common")
        self.alike[number].is_mixed = True
        self.alike[number].first = -1
        return [i for i in range(self.each_count) if self.each[i] == number]


cdef int _put_lane(Typing *t, const Pattern *p, Run *o) noexcept nogil:
    """Put out which pattern a message is of, and which topic partition or file it came in."""
    cdef const uint8_t *at = t.place
    cdef const uint8_t *start
    cdef int i
    if _put_bytes(o, <const uint8_t *>&p.number, sizeof(int32_t)):
        return LEFT
    for i in range(FIELDS):
        start = at
        if _pass_place(t.run, &at, t.place + t.place_size, i == TOPIC or i == FILE_):
            return LEFT
        if i != OFFSET and i != LINE and _put_bytes(o, start, at - start):
            return LEFT
    return OK


cdef int _put_place_in_order(Typing *t, const Pattern *p, Run *o) noexcept nogil:
    """Put out what orders messages of a lane, which compares as bytes; stop at one with neither numbers nor a place."""
    cdef const PlaceValue *place = t.order.place
    cdef int count = t.number_count if t.number_count > 0 else 0
    cdef bint is_place, is_by_place
    if _find_place(t, p, &is_place) or (t.number_count < 0 and not is_place):
        return LEFT
    is_by_place = p.order == BY_ARRIVAL and is_place
    if p.order != OF_FULL_LOAD and not is_by_place:
        if _put(o, t.number_count >= 0) or _put_integers(o, t.numbers, count):
            return LEFT
    if _put_integer(o, place[OFFSET].value) or _put_integer(o, place[LINE].value):
        return LEFT
    if is_by_place and (_put(o, t.number_count >= 0) or _put_integers(o, t.numbers, count)):
        return LEFT
    return _put_integer(o, t.number) if t.is_change else OK


cdef inline bint _is_before(
    const uint8_t *one, Py_ssize_t size, const uint8_t *other, Py_ssize_t other_size
) noexcept nogil:
    cdef int found = memcmp(one, other, min(size, other_size))
    return found < 0 or (found == 0 and size < other_size)


cdef int _put_numbers(Typing *t, Run *o, int rule) noexcept nogil:
    """Put out the numbers of a message whose parts were gathered, so that they compare as bytes; nothing for none."""
    cdef uint64_t number
    cdef int i, k
    if _take_facts(t, rule):
        return LEFT
    if t.number_count < 0:
        return OK
    if _put(o, 1):
        return LEFT
    for i in range(t.number_count):
        number = <uint64_t>t.numbers[i] ^ (<uint64_t>1 << 63)
        for k in range(56, -8, -8):
            if _put(o, <uint8_t>(number >> k & 255)):
                return LEFT
    return OK


cdef int _put_names(Typing *t, Run *o, const uint8_t *start, const uint8_t *end, int values) noexcept nogil:
    """Put out the names of a row image's columns, each with its length; stop at a value that may be none."""
    cdef Run *r = t.run
    cdef int64_t count, i
    cdef const uint8_t *at
    r.at, r.end = start, end
    if _read_long(r, &count) or count < 0 or count > r.end - r.at or _put_long(o, count):
        return LEFT
    for i in range(count):
        at = r.at
        if _skip_text(r) or _is_mark(r, at, r.at - at) or _put_bytes(o, at, r.at - at):
            return LEFT
        at = r.at
        if _skip(r, values) or _is_word(t, r.code + values, at, r.at):
            return LEFT
        # No name begins with the mark of one that says nothing.
        if _says_nothing(t, values, at) and _put(o, 1):
            return LEFT
    return _read_end(r) if count else OK


cdef int _put_names_of_rows(Typing *t, Run *o, const Slot *slot) noexcept nogil:
    """Put out the names of the columns of each row image in an array."""
    cdef Run *r = t.run
    cdef const Instruction *item = r.code + r.code[slot.node].a[0]
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef int64_t count, i
    if item.kind != OPTIONAL or r.code[item.a[0]].kind != MAP:
        return LEFT
    r.at, r.end = slot.start, slot.end
    if _read_long(r, &count) or count < 0 or count > r.end - r.at or _put_long(o, count):
        return LEFT
    end = r.at
    for i in range(count):
        start = end
        r.at, r.end = start, slot.end
        if _skip(r, r.code[slot.node].a[0]):
            return LEFT
        end = r.at
        if _put(o, start[0]):
            return LEFT
        if start[0] == item.a[1] << 1 and _put_names(t, o, start + 1, end, r.code[item.a[0]].a[0]):
            return LEFT
    return OK


cdef int _put_all_names(Typing *t, Run *o) noexcept nogil:
    """Put out the names of the columns in all row images of a message whose parts were gathered."""
    cdef const Slot *slot
    cdef int part, kind
    for part in range(BEFORE, OLD + 1):
        slot = t.slots + part
        if slot.start == NULL:
            continue
        kind = t.run.code[slot.node].kind
        if _put(o, <uint8_t>part):
            return LEFT
        if kind == ARRAY:
            if _put_names_of_rows(t, o, slot):
                return LEFT
        elif kind != MAP or _put_names(t, o, slot.start, slot.end, t.run.code[slot.node].a[0]):
            return LEFT
    return OK


cdef tuple _survey_message(Typing *t, bytes message, dict rules):
    """Return what a message says before its tables are known, as `RowEngine.survey` does."""
    cdef Py_ssize_t numbers
    if _gather_message(t, _start(message), PyBytes_GET_SIZE(message)):
        return None
    fixed = PyBytes_FromStringAndSize(<const char *>t.fixed.out, t.fixed.size)
    rule = rules.get(fixed)
    t.said.size = 0
    # Whether the message is a delete is not known here.
    t.lacks_nulls = t.run.code[t.run.root].a[6] & LACKS_NULLS
    if rule is None or _put_numbers(t, t.said, rule):
        return fixed, None, None
    numbers = t.said.size
    if _put_all_names(t, t.said):
        return fixed, None, None
    return (
        fixed,
        PyBytes_FromStringAndSize(<const char *>t.said.out, numbers),
        PyBytes_FromStringAndSize(<const char *>t.said.out + numbers, t.said.size - numbers),
    )


cdef class FactEngine(SurveyEngine):
    """Tells which messages are alike in all but the values of their rows, their times and their numbers.

    Such messages are changes of one operation and table, and none of them is refused if one is not. It needs no places.
    """

    cdef int _survey(self, const uint8_t *start, Py_ssize_t size, int32_t index) noexcept nogil:
        """Note what a message is like."""
        cdef Typing *t = &self.typing
        cdef const Pattern *p
        cdef int32_t number
        if _gather_message(t, start, size):
            return LEFT
        p = _find(self.patterns, self.pattern_room, t.fixed.out, t.fixed.size)
        if p == NULL or _take_facts(t, p.position) or _repeats_much(t, p) or (t.key_count and _is_other_key(t)):
            return LEFT
        t.said.size = 0
        t.lacks_nulls = not t.is_change and _lacks_nulls(t, p)
        if _put_bytes(t.said, <const uint8_t *>&p.number, sizeof(int32_t)) or _put_all_names(t, t.said):
            return LEFT
        number = self._number_alike(t.said.out, t.said.size)
        if number < 0:
            return LEFT
        self.each[index] = number
        return OK

    def numbers(self):
        """Return the number of what each message of the column is like, as 32-bit integers; -1 for what was left."""
        self._alone()
        return PyBytes_FromStringAndSize(<const char *>self.each, self.each_count * sizeof(int32_t))


cdef bint _repeats_much(Typing *t, const Pattern *p) noexcept nogil:
    """Return whether the rows of a message may be too many for what each repeats."""
    cdef Run *r = t.run
    cdef const Slot *rows = t.slots + ROWS
    cdef int64_t count
    if rows.start == NULL:
        return False
    r.at, r.end = rows.start, rows.end
    if _read_long(r, &count) or count > MOST_ROWS:
        return True
    return count > 1 and count > (4 << 20) // (p.weight + t.loose + 1)


cdef bint _is_other_key(Typing *t) noexcept nogil:
    """Return whether the key beside a row may be that of another."""
    cdef const Slot *image = t.slots + (BEFORE if t.slots[AFTER].start == NULL else AFTER)
    cdef int i
    if image.start == NULL or t.run.code[image.node].kind != MAP:
        return True
    for i in range(t.key_count):
        if not _has_value(t, image, i):
            return True
    return False


cdef bint _has_value(Typing *t, const Slot *image, int i) noexcept nogil:
    """Return whether a row has a value of the key, under its name."""
    cdef Run *r = t.run
    cdef const Token *wanted = t.key_values + i
    cdef const uint8_t *at
    cdef Py_ssize_t size
    cdef int64_t count, k
    cdef bint is_named
    r.at, r.end = image.start, image.end
    if _read_long(r, &count):
        return False
    for k in range(count):
        at = r.at
        if _skip_text(r):
            return False
        size = r.at - at
        is_named = size == t.key_sizes[i] and memcmp(at, t.key_names[i], size) == 0
        at = r.at
        if _skip(r, r.code[image.node].a[0]):
            return False
        if is_named:
            return r.at - at == wanted.end - wanted.start and memcmp(at, wanted.start, r.at - at) == 0
    return False
