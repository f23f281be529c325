# Payloads to columns: the values of rows are checked as a translation checks them, and go into buffers in Arrow's layout.

cdef int _add_room(Vessel *v, Py_ssize_t count) noexcept nogil:
    """Make room for a number of cells; those that are added are null."""
    cdef Py_ssize_t room = count + (count >> 1), before, after
    cdef uint8_t *made
    if count > INT32_MAX:
        return LEFT
    if v.room == 0 and v.cost:
        v.left[0] -= v.cost
        if v.left[0] < 0:
            return LEFT
    if room < v.least:
        room = v.least
    room = (room + 64) & ~<Py_ssize_t>63
    made = <uint8_t *>realloc(v.bits, room >> 3)
    if made == NULL:
        return LEFT
    v.bits = made
    memset(made + (v.room >> 3), 0, (room - v.room) >> 3)
    if v.layout != NO_CELLS:
        before, after = _cells_size(v, v.room), _cells_size(v, room)
        made = <uint8_t *>realloc(v.cells, after)
        if made == NULL:
            return LEFT
        v.cells = made
        if v.room == 0:
            before = 0
        memset(made + before, 0, after - before)
    v.room = room
    return OK


cdef inline Py_ssize_t _cells_size(const Vessel *v, Py_ssize_t count) noexcept nogil:
    if v.layout == CELL_BITS:
        return (count + 7) >> 3
    if v.layout == CELL_ENDS:
        return 4 * (count + 1)
    return v.width * count


cdef inline int _mark(Vessel *v, Py_ssize_t place) noexcept nogil:
    """Say that a cell is not null, for which there is room from then on."""
    if place >= v.room and _add_room(v, place + 1):
        return LEFT
    v.bits[place >> 3] |= 1 << (place & 7)
    v.filled += 1
    return OK


cdef inline void _end_at(Vessel *v, Py_ssize_t place) noexcept nogil:
    """Say where the cells up to a place end, and that the next ones begin there."""
    cdef int32_t *ends = <int32_t *>v.cells
    while v.ended < place:
        v.ended += 1
        ends[v.ended] = <int32_t>v.size


cdef inline int _hold(Vessel *v, Py_ssize_t place, const uint8_t *start, Py_ssize_t size, Py_ssize_t most) noexcept nogil:
    """Put bytes into a cell."""
    cdef Py_ssize_t room
    cdef uint8_t *data
    if size > most - v.size or _mark(v, place):
        return LEFT
    _end_at(v, place)
    if size > v.data_room - v.size:
        room = v.size + size
        room += (room >> 1) + 16 * v.least + 64
        data = <uint8_t *>realloc(v.data, room)
        if data == NULL:
            return LEFT
        v.data, v.data_room = data, room
    if size:
        memcpy(v.data + v.size, start, size)
        v.size += size
    _end_at(v, place + 1)
    return OK


cdef int _fill_text(Transit *t, const Vessels *s, const Filling *f, Py_ssize_t place) noexcept nogil:
    """Fill a cell with a text, with bytes, or with as many bytes as a fixed type has."""
    cdef Py_ssize_t size = f.turn.c
    if size >= 0:
        if size > t.run.end - t.run.at:
            return LEFT
        t.run.at += size
    elif _pass_size(t, &size):
        return LEFT
    if f.turn.kind == AS_TEXT and not cdcavro_is_utf8(t.run.at - size, t.run.at):
        return LEFT
    return _hold(s.columns + f.column, place, t.run.at - size, size, s.most)


cdef int _fill_decimal(Transit *t, const Vessels *s, const Filling *f, Py_ssize_t place) noexcept nogil:
    """Fill a cell with an integer of 16 or 32 bytes, lowest first."""
    cdef Vessel *v = s.columns + f.column
    cdef Py_ssize_t size, i
    cdef const uint8_t *at
    cdef uint8_t *cell
    if _pass_decimal(t, &f.turn, &size) or _mark(v, place):
        return LEFT
    at = t.run.at - size
    cell = v.cells + v.width * place
    if at[0] >= 0x80:
        memset(cell, 0xFF, v.width)
    # What is longer only repeats the sign.
    for i in range(size if size < v.width else v.width):
        cell[i] = at[size - 1 - i]
    return OK


cdef int _fill_items(Transit *t, const Vessels *s, const Filling *f, Py_ssize_t place) noexcept nogil:
    """Fill a cell with the items of an array, or with the entries of a map, whose names have a column of their own."""
    cdef Vessel *v = s.columns + f.column
    cdef Vessel *names = NULL
    cdef int64_t read = 0, count, i
    cdef Py_ssize_t size
    cdef uint32_t own = 0
    cdef const uint8_t *stop
    if f.turn.kind == AS_MAP:
        t.run.object += 1
        own = t.run.object
        names = s.columns + f.turn.c
    if _mark(v, place):
        return LEFT
    _end_at(v, place)
    while True:
        if _pass_block(t, f.turn.b, False, &read, &count, &stop) or count > s.most - v.size:
            return LEFT
        s.room[0] += count * f.first
        if s.room[0] > s.most_room:
            return LEFT
        if count == 0:
            _end_at(v, place + 1)
            return OK
        if s.code[f.turn.a].turn.kind == AS_NOTHING and names == NULL:
            v.size += count
        else:
            for i in range(count):
                if names != NULL:
                    if _pass_size(t, &size) or not cdcavro_is_utf8(t.run.at - size, t.run.at):
                        return LEFT
                    if _add_name(&t.run, own, t.run.at - size, size):
                        return LEFT
                    if _hold(names, v.size, t.run.at - size, size, s.most):
                        return LEFT
                if _fill_cell(t, s, f.turn.a, v.size):
                    return LEFT
                v.size += 1
        if stop != NULL and t.run.at != stop:
            return LEFT


cdef int _fill_parts(Transit *t, const Vessels *s, const Filling *f, Py_ssize_t place) noexcept nogil:
    """Fill a cell with the fields of a record, or with one branch of a union of several."""
    cdef const int32_t *parts = s.indexes + f.first
    cdef int64_t value
    cdef int i
    if f.turn.kind == AS_UNION:
        if _pass_long(t, &value) or not 0 <= value < f.count:
            return LEFT
        if parts[value] < 0:
            return OK
        return _mark(s.columns + f.column, place) or _fill_cell(t, s, parts[value], place)
    if f.column >= 0 and _mark(s.columns + f.column, place):
        return LEFT
    for i in range(f.count):
        if _fill_cell(t, s, parts[i], place):
            return LEFT
    return OK


cdef int _fill_whole(Transit *t, const Vessels *s, const Filling *f, Py_ssize_t place) noexcept nogil:
    """Fill a cell with an integer, or with the text of a symbol."""
    cdef Vessel *v = s.columns + f.column
    cdef const int32_t *symbol
    cdef int64_t value
    if f.turn.kind == AS_SYMBOL:
        if _pass_long(t, &value) or not 0 <= value < f.count:
            return LEFT
        symbol = s.indexes + f.first + 2 * value
        return _hold(v, place, t.plan.texts + symbol[0], symbol[1], s.most)
    if _pass_limited(t, &f.turn, &value) or _mark(v, place):
        return LEFT
    if f.turn.kind == AS_INT:
        (<int32_t *>v.cells)[place] = <int32_t>value
    else:
        (<int64_t *>v.cells)[place] = value
    return OK


cdef int _fill_cell(Transit *t, const Vessels *s, int node, Py_ssize_t place) noexcept nogil:
    """Read and check one datum by the instruction of its type, and fill the cell at a place with it."""
    cdef const Filling *f = s.code + node
    cdef Vessel *v
    cdef int64_t value
    if f.turn.kind == AS_OPTION:
        if _pass_long(t, &value) or not 0 <= value < f.turn.b:
            return LEFT
        if value == f.turn.c:
            return OK
        f = s.code + f.turn.a
    if f.turn.kind == AS_TEXT or f.turn.kind == AS_BYTES:
        return _fill_text(t, s, f, place)
    if f.turn.kind == AS_INT or f.turn.kind == AS_LONG or f.turn.kind == AS_SYMBOL:
        return _fill_whole(t, s, f, place)
    if f.turn.kind == AS_DECIMAL:
        return _fill_decimal(t, s, f, place)
    if f.turn.kind == AS_RECORD or f.turn.kind == AS_UNION:
        return _fill_parts(t, s, f, place)
    if f.turn.kind == AS_LIST or f.turn.kind == AS_MAP:
        return _fill_items(t, s, f, place)
    if f.turn.kind == AS_NOTHING:
        return OK
    v = s.columns + f.column
    if f.turn.kind == AS_TAKEN:
        if v.width > t.run.end - t.run.at or _mark(v, place):
            return LEFT
        memcpy(v.cells + v.width * place, t.run.at, v.width)
        t.run.at += v.width
        return OK
    if f.turn.kind != AS_BOOLEAN or t.run.at >= t.run.end or t.run.at[0] > 1 or _mark(v, place):
        return LEFT
    v.cells[place >> 3] |= t.run.at[0] << (place & 7)
    t.run.at += 1
    return OK


cdef Py_ssize_t _fill_rows(Transit *t, const Plan *plan, const Vessels *s, const Column *column) noexcept nogil:
    """Fill the columns with the payloads of a column; return the index of the first that is left."""
    cdef Py_ssize_t i, at
    cdef int32_t offsets[2]
    cdef const uint8_t *start = <const uint8_t *>column.data.buf
    for i in range(column.count):
        at = column.first + i
        if column.has_nulls and not (<const uint8_t *>column.validity.buf)[at >> 3] >> (at & 7) & 1:
            continue
        memcpy(offsets, <const char *>column.offsets.buf + 4 * at, 8)
        if not 0 <= offsets[0] <= offsets[1] <= column.data.len:
            return i
        _set_out(t, plan, start + offsets[0], offsets[1] - offsets[0])
        if _fill_cell(t, s, plan.root, i) or t.run.at != t.run.end:
            return i
    return column.count
