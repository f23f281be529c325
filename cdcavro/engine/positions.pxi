# Times, positions and places of typed rows.


cdef int _text_at(Run *r, const Slot *slot, const uint8_t **start, const uint8_t **end) noexcept nogil:
    """Give the text at a slot; of a member that may be a number too, only where it is one."""
    cdef int64_t size
    cdef const Instruction *type = r.code + slot.node
    r.at, r.end = slot.start, slot.end
    if type.kind == VARIANT:
        if r.at[0] != type.a[3] << 1:
            return LEFT
        r.at += 1
    elif type.kind != STRING:
        return LEFT
    if _read_long(r, &size) or size < 0 or size > r.end - r.at:
        return LEFT
    start[0] = r.at
    end[0] = r.at + size
    return OK


cdef int _long_at(Run *r, const Slot *slot, int64_t *value) noexcept nogil:
    """Give the integer at a slot."""
    cdef const Instruction *type = r.code + slot.node
    r.at, r.end = slot.start, slot.end
    if type.kind == VARIANT:
        if r.at[0] != type.a[2] << 1:
            return LEFT
        r.at += 1
    elif type.kind != LONG and type.kind != INT:
        return LEFT
    return _read_long(r, value)


cdef int _put_count(Run *o, int64_t value) noexcept nogil:
    """Put out the text of an integer from 0 on, behind its length."""
    cdef uint8_t digits[20]
    cdef int at = 20
    if value < 0:
        return LEFT
    while True:
        at -= 1
        digits[at] = <uint8_t>(48 + value % 10)
        value //= 10
        if value == 0:
            break
    return _put_long(o, 20 - at) or _put_bytes(o, digits + at, 20 - at)


cdef int _count_at(Run *r, const Slot *slot, int64_t *value) noexcept nogil:
    """Give the canonical integer at a slot, or that of its text."""
    cdef const uint8_t *start
    cdef const uint8_t *end
    if _long_at(r, slot, value) == OK:
        return OK
    if _text_at(r, slot, &start, &end) or not cdcavro_counted(start, end, value):
        return LEFT
    return LEFT if start[0] == 48 and end - start > 1 else OK


cdef int _time_at(Typing *t, const Slot *slot, int64_t *value, bint *known) noexcept nogil:
    """Give the instant at a slot in microseconds; a negative count is none."""
    cdef Facts facts
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef int64_t unit = slot.member.unit
    if unit < 0:
        # A text of an instant, which ends in Z.
        known[0] = True
        if _text_at(t.run, slot, &start, &end) or end - start > 27 or end == start or end[-1] != 90:
            return LEFT
        return OK if cdcavro_local(start, end - 1, value) else LEFT
    if unit == 0:
        # A text of local time, without a zone.
        facts.zone, facts.zones = t.zone, t.zones
        if _text_at(t.run, slot, &start, &end) or not cdcavro_local(start, end, value) or end - start > 26:
            return LEFT
        known[0] = t.zones > 0
        return _in_zone(&facts, start, end, value) if known[0] else OK
    if _count_at(t.run, slot, value) or value[0] > LARGEST // unit:
        return LEFT
    known[0] = value[0] >= 0
    value[0] = value[0] * unit if known[0] else 0
    return OK


cdef int _take_times(Typing *t) noexcept nogil:
    """Take the times of a message, the finer ones where both are there."""
    cdef const Slot *slots = t.slots
    t.has_event = t.has_system = False
    if slots[EVENT_TIME_FINE].start != NULL and _time_at(t, slots + EVENT_TIME_FINE, &t.event, &t.has_event):
        return LEFT
    if not t.has_event and slots[EVENT_TIME].start != NULL and _time_at(t, slots + EVENT_TIME, &t.event, &t.has_event):
        return LEFT
    if slots[SYSTEM_TIME_FINE].start != NULL and _time_at(t, slots + SYSTEM_TIME_FINE, &t.system, &t.has_system):
        return LEFT
    if not t.has_system and slots[SYSTEM_TIME].start != NULL:
        return _time_at(t, slots + SYSTEM_TIME, &t.system, &t.has_system)
    return OK


cdef int _take_numbers(Typing *t, int rule) noexcept nogil:
    """Take the numbers of a message's position; their count is -1 if it has none, or 0 where it may do without."""
    cdef const Slot *slots = t.slots + POSITION_1
    cdef int64_t *numbers = t.numbers
    t.number_count = 0 if rule == FILE_OFFSET and slots[0].start == NULL else -1
    if rule == NO_POSITION:
        return OK
    if rule == COMMIT:
        if slots[1].start == NULL or _long_at(t.run, slots + 1, numbers) or numbers[0] < 0:
            return LEFT
        t.number_count = 1
        return OK
    if rule == TIME:
        # Without one, a message has no numbers, which is not the same as none being known.
        numbers[0] = t.event // 1000
        t.number_count = 1 if t.has_event else 0
        return OK
    if rule == COUNTS:
        if slots[1].start != NULL:
            return LEFT
        t.number_count = 0
        if t.has_event:
            numbers[0] = t.event // 1000
            t.number_count = 1
        if slots[0].start != NULL:
            if _long_at(t.run, slots, numbers + t.number_count):
                return LEFT
            t.number_count += 1
        if t.number_count == 0:
            t.number_count = -1
        return OK
    if rule == BINLOG or rule == LOG_PLACE:
        return _binlog(t, slots) if rule == BINLOG else _log_place(t, slots)
    if rule == LOG_SEQUENCE:
        return _lsn(t, t.slots + POSITION_4)
    if rule == SCN:
        return _scn(t, slots)
    if rule == REDO:
        return _redo(t, t.slots + POSITION_6)
    return OK if slots[0].start == NULL else _position_number(t, slots, rule)


cdef int _position_number(Typing *t, const Slot *slot, int rule) noexcept nogil:
    """Take a position that stands in one member."""
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef const uint8_t *first
    cdef int count = 0
    if rule == SEQUENCE:
        return _sequence(t, slot)
    if _text_at(t.run, slot, &start, &end):
        return LEFT
    if rule == FILE_OFFSET:
        return _file_offset(t, slot + 1, start, end)
    if rule == TRAIL:
        return _trail(t, start, end)
    if end - start <= 19:
        t.number_count = 1 if cdcavro_counted(start, end, t.numbers) else -1
        return OK
    if rule != SEQUENCE_ID or end - start > 32 * 19:
        return OK
    # An id of several numbers, of which all but the first have 19 digits.
    first = start + ((end - start) % 19 or 19)
    while start < end:
        if not cdcavro_counted(start, first, t.numbers + count):
            return OK
        count += 1
        start, first = first, first + 19
    t.number_count = count
    return OK


cdef int _file_offset(Typing *t, const Slot *row, const uint8_t *start, const uint8_t *end) noexcept nogil:
    """Take the number of a log's file, the offset behind its only colon, and the number of the row there, if any."""
    cdef const uint8_t *colon = <const uint8_t *>memchr(start, 58, end - start)
    cdef const uint8_t *at = colon
    if colon == NULL or end - colon > 19 or not cdcavro_counted(colon + 1, end, t.numbers + 1):
        return LEFT
    while at > start and 48 <= at[-1] <= 57:
        at -= 1
    if at == colon or colon - at > 18 or not cdcavro_counted(at, colon, t.numbers):
        return LEFT
    t.numbers[2] = row.start == NULL
    t.number_count = 3 if row.start == NULL else 4
    return OK if row.start == NULL else _long_at(t.run, row, t.numbers + 3)


cdef int _trail(Typing *t, const uint8_t *start, const uint8_t *end) noexcept nogil:
    """Take the number of a trail's file and the offset in it, the last ten digits."""
    cdef const uint8_t *offset = end - 10 if end - start > 10 else start
    t.numbers[0] = 0
    if offset - start > 18 or (offset > start and not cdcavro_counted(start, offset, t.numbers)):
        return LEFT
    if not cdcavro_counted(offset, end, t.numbers + 1):
        return LEFT
    t.number_count = 2
    return OK


cdef int _sequence(Typing *t, const Slot *slot) noexcept nogil:
    """Take a sequence of ten digits of seconds and up to five of a number."""
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef int64_t whole, unit = 1
    cdef int digits = 0
    if _long_at(t.run, slot, &whole) == OK:
        if not _within(whole, 1000000000, 999999999999999):
            return OK
        while not _within(whole // unit, 0, 9999999999):
            unit *= 10
        t.numbers[0] = whole // unit
        t.numbers[1] = whole % unit
        t.number_count = 2
        return OK
    if _text_at(t.run, slot, &start, &end):
        return LEFT
    digits = <int>(end - start) if end - start < 20 else 20
    if not 10 <= digits <= 15 or not cdcavro_counted(start, end, &whole):
        return OK
    t.numbers[1] = 0
    if not cdcavro_counted(start, start + 10, t.numbers):
        return LEFT
    if digits > 10 and not cdcavro_counted(start + 10, end, t.numbers + 1):
        return LEFT
    t.number_count = 2
    return OK


cdef int _binlog(Typing *t, const Slot *slots) noexcept nogil:
    """Take the number of a binlog file, the offset in it and the row of the event."""
    cdef int i
    for i in range(3):
        if slots[i].start == NULL:
            return OK
    return _numbers_in_file(t, slots, 3, 3)


cdef int _log_place(Typing *t, const Slot *slots) noexcept nogil:
    """Take the number of a log's file and the offset in it, which is 0 if it is not stated."""
    if slots[0].start == NULL:
        return OK
    t.numbers[1] = 0
    return _numbers_in_file(t, slots, 1 if slots[1].start == NULL else 2, 2)


cdef int _numbers_in_file(Typing *t, const Slot *slots, int stated, int count) noexcept nogil:
    """Take the number at the end of a file's name and those in it as far as they are stated; none if it has none."""
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef const uint8_t *at
    cdef int i
    if _text_at(t.run, slots, &start, &end):
        return LEFT
    at = end
    while at > start and 48 <= at[-1] <= 57 and end - at < 18:
        at -= 1
    if at == end:
        return OK
    for i in range(1, stated):
        if _long_at(t.run, slots + i, t.numbers + i):
            return LEFT
        if t.numbers[i] < 0:
            return OK
    if not cdcavro_counted(at, end, t.numbers):
        return LEFT
    t.number_count = count
    return OK


cdef int _lsn(Typing *t, const Slot *slots) noexcept nogil:
    """Take the log sequence numbers of the last commit and of the change, from ["7","9"]."""
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef const uint8_t *start
    cdef int i
    if slots[1].start == NULL:
        if slots[0].start == NULL:
            return OK
        if _long_at(t.run, slots, t.numbers):
            return LEFT
        t.number_count = 1 if t.numbers[0] >= 0 else -1
        return OK
    if _text_at(t.run, slots + 1, &at, &end) or end - at < 2 or at[0] != 91 or end[-1] != 93:
        return LEFT
    at += 1
    end -= 1
    for i in range(2):
        if i == 0 and end - at >= 5 and memcmp(at, b"null,", 5) == 0:
            t.numbers[0] = 0
            at += 5
            continue
        if at >= end or at[0] != 34:
            return LEFT
        at += 1
        start = at
        while at < end and 48 <= at[0] <= 57:
            at += 1
        if at - start > 18 or not cdcavro_counted(start, at, t.numbers + i) or at >= end or at[0] != 34:
            return LEFT
        at += 1
        if i == 0:
            if at >= end or at[0] != 44:
                return LEFT
            at += 1
    t.number_count = 2
    return OK if at == end else LEFT


cdef int _check_sequence(Typing *t, const Slot *row) noexcept nogil:
    """Take back a sequence if the message cannot have been made at its time."""
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef int64_t first = 1577836800, last = 4102444799, time
    cdef bint has_time = False
    cdef const Slot *slot
    cdef int i
    if t.number_count < 0:
        return OK
    if row.start != NULL:
        if _text_at(t.run, row, &start, &end):
            return LEFT
        if memchr(start, 46, end - start) == NULL:
            t.number_count = -1
            return OK
    for i in range(2):
        slot = t.slots + (EVENT_TIME if i == 0 else SYSTEM_TIME)
        if slot.start == NULL:
            continue
        if _text_at(t.run, slot, &start, &end) or end - start > 26 or not cdcavro_local(start, end, &time):
            return LEFT
        time = (time - (999999 if time < 0 else 0)) // 1000000
        first = time if not has_time or time < first else first
        last = time if not has_time or time > last else last
        has_time = True
    if has_time:
        first -= 86400
        last += 86400
    if not first <= t.numbers[0] <= last:
        t.number_count = -1
    return OK


cdef int _pair_at(Run *r, const Slot *slot, int64_t *first, int64_t *second) noexcept nogil:
    """Give the two numbers of a text like 2/5."""
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef const uint8_t *slash
    if _text_at(r, slot, &at, &end):
        return LEFT
    slash = at
    while slash < end and slash[0] != 47:
        slash += 1
    if slash - at > 18 or end - slash - 1 > 18 or slash == end:
        return LEFT
    return OK if cdcavro_counted(at, slash, first) and cdcavro_counted(slash + 1, end, second) else LEFT


cdef int _scn(Typing *t, const Slot *slots) noexcept nogil:
    """Take a change number, then the first number of a place and that of the message, as far as there are any."""
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef int64_t place = 0, seq = 0
    cdef bint has_place = False, has_seq = False
    cdef int count = 0
    if slots[0].start != NULL:
        if _sequence(t, slots) or _check_sequence(t, slots + 3):
            return LEFT
        if t.number_count < 0:
            if _text_at(t.run, slots, &at, &end):
                return LEFT
            t.number_count = 1 if cdcavro_counted(at, end, t.numbers) else -1
        count = t.number_count if t.number_count > 0 else 0
    t.number_count = -1
    if slots[1].start != NULL:
        if _pair_at(t.run, slots + 1, &place, &seq):
            return LEFT
        has_place = True
    if slots[2].start != NULL:
        if _count_at(t.run, slots + 2, &seq) or seq < 0:
            return LEFT
        has_seq = True
    if count == 0 and not has_seq:
        return OK
    if count == 0:
        t.numbers[0] = seq
        count = 1
        if has_place:
            t.numbers[1] = place
            count = 2
    else:
        if has_place or has_seq:
            t.numbers[count] = place
            count += 1
        if has_seq:
            t.numbers[count] = seq
            count += 1
    t.number_count = count
    return OK


cdef int _redo(Typing *t, const Slot *slots) noexcept nogil:
    """Take the system change numbers of a commit and of the change, and the number of the statement."""
    cdef int i
    for i in range(2):
        if slots[i].start == NULL or _count_at(t.run, slots + i, t.numbers + i) or t.numbers[i] < 0:
            return LEFT
    t.numbers[2] = 0
    if slots[2].start != NULL and (_long_at(t.run, slots + 2, t.numbers + 2) or t.numbers[2] < 0):
        return LEFT
    t.number_count = 3
    return OK
