# Days and times of cells, as Avro counts them.

cdef inline bint _within(int64_t value, int64_t least, int64_t most) noexcept nogil:
    return least <= value <= most


cdef inline bint _is_of_calendar(int64_t micros) noexcept nogil:
    """Return whether an instant is of the years 1 to 9999."""
    return FIRST_DAY * DAY_MICROS <= micros < (LAST_DAY + 1) * DAY_MICROS


cdef int _moment(Run *r, const Cell *cell, const Value *value, const Facts *facts, int64_t *count) noexcept nogil:
    """Give the days, microseconds or milliseconds that a value is."""
    cdef const uint8_t *at = value.at
    cdef const uint8_t *end = value.end
    cdef bint is_text = value.kind == V_STRING
    if cell.op == DAY_:
        if value.kind == V_LONG and cell.a:
            count[0] = value.whole
            return OK if FIRST_DAY <= value.whole <= LAST_DAY else LEFT
        return OK if is_text and end - at == 10 and cdcavro_day(at, count) else LEFT
    if cell.op == CLOCK_ or cell.op == LOCAL_:
        if value.kind == V_LONG and cell.a:
            return _counted(cell, value.whole, count)
        if not is_text:
            return LEFT
        if cell.op == CLOCK_:
            return OK if cdcavro_clock(at, end, count) else LEFT
        return OK if end - at <= 26 and cdcavro_local(at, end, count) else LEFT
    if cell.op == IN_ZONE:
        # A fraction has just the digits of its column.
        if not is_text or end - at != 19 + (cell.b + 1 if cell.b else 0) or at[10] != 32:
            return LEFT
        return _in_zone(facts, at, end, count) or count[0] < 0
    return _instant(cell, value, is_text, count)


cdef int _instant(const Cell *cell, const Value *value, bint is_text, int64_t *count) noexcept nogil:
    """Give the microseconds of an instant, or its milliseconds."""
    cdef const uint8_t *at = value.at
    cdef const uint8_t *end = value.end
    cdef int64_t whole = value.whole
    if cell.op == SECONDS_ or cell.op == SECONDS_OR_LONG:
        if value.kind == V_LONG and cell.op == SECONDS_OR_LONG and _within(whole, 0, 999999999999):
            count[0] = whole * 1000000
        elif not is_text or not cdcavro_seconds(at, end, count):
            return LEFT
    elif cell.op == MILLISECONDS or cell.op == MILLIS_:
        if value.kind != V_LONG or not _within(whole, -99999999999999, 999999999999999):
            return LEFT
        count[0] = whole * 1000
    elif cell.op == MICROSECONDS:
        if value.kind != V_LONG:
            return LEFT
        count[0] = whole
    elif cell.op == ISO:
        if not is_text or end - at < 20 or end[-1] != 90 or at[10] != 84 or not cdcavro_local(at, end - 1, count):
            return LEFT
        if count[0] < 0:
            return LEFT
    elif cell.op != PADDED or _padded(value, is_text, count):
        return LEFT
    if not _is_of_calendar(count[0]):
        return LEFT
    if cell.op == MILLIS_:
        count[0] = whole
    return OK


cdef int _counted(const Cell *cell, int64_t value, int64_t *count) noexcept nogil:
    """Give the microseconds of a count of units of 10^-a seconds, in a column with b digits of a second, -1 if unknown."""
    cdef int64_t unit = 1
    cdef int i
    for i in range(cell.a - cell.b if cell.b >= 0 else 0):
        unit *= 10
    if value % unit:
        return LEFT
    if cell.a == 9:
        if value % 1000:
            return LEFT
        count[0] = value // 1000
    elif cell.a == 3:
        if not _within(value, -99999999999999, 999999999999999):
            return LEFT
        count[0] = value * 1000
    else:
        count[0] = value
    if cell.op == CLOCK_:
        return OK if 0 <= count[0] < DAY_MICROS else LEFT
    return OK if _is_of_calendar(count[0]) else LEFT


cdef int _padded(const Value *value, bint is_text, int64_t *count) noexcept nogil:
    """Give the instant of 13 digits of milliseconds, optionally with nanoseconds, or of fewer digits of seconds."""
    cdef const uint8_t *at = value.at
    cdef int64_t whole, fine
    cdef int64_t size = value.end - value.at
    if value.kind == V_LONG:
        if _within(value.whole, 1000000000000, 9999999999999):
            count[0] = value.whole * 1000
            return OK
        if not _within(value.whole, 0, 9999999999):
            return LEFT
        count[0] = value.whole * 1000000
        return OK
    if not is_text:
        return LEFT
    if size == 13 and cdcavro_counted(at, value.end, &whole):
        count[0] = whole * 1000
        return OK
    if size == 23 and at[13] == 46:
        if not cdcavro_counted(at, at + 13, &whole) or not cdcavro_counted(at + 14, value.end, &fine) or fine % 1000:
            return LEFT
        if whole % 1000 != 0 and whole % 1000 != fine // 1000000:
            return LEFT
        count[0] = whole // 1000 * 1000000 + fine // 1000
        return OK
    if not cdcavro_seconds(at, value.end, count):
        return LEFT
    return OK if _within(count[0], 0, 9999999999999999) else LEFT


cdef int _in_zone(const Facts *facts, const uint8_t *at, const uint8_t *end, int64_t *count) noexcept nogil:
    """Give the instant of a local time in the source's zone, far from the times at which its clocks change."""
    cdef int64_t local
    cdef Py_ssize_t low = 0, high = facts.zones, middle
    cdef const int64_t *piece
    if end - at > 26 or not cdcavro_local(at, end, &local):
        return LEFT
    while low < high:
        middle = (low + high) // 2
        if facts.zone[3 * middle] <= local:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return LEFT
    piece = facts.zone + 3 * (low - 1)
    if local >= piece[1]:
        return LEFT
    count[0] = local - piece[2]
    return OK
