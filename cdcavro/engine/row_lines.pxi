# Rows of the lines of a text, each with its own number; and rows in groups, those of each table's version together.

cdef struct Passed:  # lines from a position on, and which of them were left
    Py_ssize_t position
    int32_t count
    int32_t *left
    int64_t *places  # where the lines that were left begin
    Py_ssize_t left_count
    Py_ssize_t left_room
    uint8_t *place  # the encoded fields that say where a line is, up to its number
    Py_ssize_t place_size


cdef int _leave_line(Passed *lines) noexcept nogil:
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
    RowEngine engine, const uint8_t *start, Py_ssize_t size, Passed *lines, int64_t number, Py_ssize_t most
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
    cdef Passed lines
    cdef int64_t first = number
    cdef Py_ssize_t size = PyBytes_GET_SIZE(raw), bound = most
    cdef const uint8_t *start = _start(raw)
    cdef int stopped
    if not 0 <= position <= size or not 0 <= first < LARGEST >> 1 or not 0 <= bound < INT32_MAX:
        raise ValueError("a position in the text, the number of a line and a bound")
    engine._alone()
    memset(&lines, 0, sizeof(Passed))
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
        made.append((
            number,
            PyBytes_FromStringAndSize(NULL, sizes[one]),
            PyBytes_FromStringAndSize(NULL, 4 * counts[one]),
        ))
        sizes[one] = counts[one] = 0
    for i in range(first, last):
        one = group[pattern[i]]
        size = end[i + 1] - end[i]
        memcpy(PyBytes_AS_STRING(made[slot[one]][1]) + sizes[one], payload + end[i], size)
        sizes[one] += size
        (<int32_t *>PyBytes_AS_STRING(made[slot[one]][2]))[counts[one]] = <int32_t>sizes[one]
        counts[one] += 1
    return made
