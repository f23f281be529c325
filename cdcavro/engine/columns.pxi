# Payloads to columns in Arrow's layout: their values are checked as a translation checks them, and go into buffers.


# What columns are filled by, and what they are until they are full.

cdef enum:  # FillKind: what becomes of a datum, as in `column_program.py`
    AS_NOTHING, AS_BOOLEAN, AS_INT, AS_LONG, AS_TAKEN, AS_TEXT, AS_BYTES, AS_DECIMAL, AS_SYMBOL
    AS_LIST, AS_MAP, AS_RECORD, AS_OPTION, AS_UNION


cdef enum:  # Layout: what the cells of a column are
    NO_CELLS, BITS, CELLS, ENDS

cdef struct FillInstruction:  # an instruction; its operands stand where those of a translation do
    TurnInstruction turn
    int32_t column
    int32_t first
    int32_t count
    int32_t unused

cdef struct ColumnBuilder:  # a column: every cell that is not filled is null, and 0 or of no length
    uint8_t *bits  # which cells are not null
    uint8_t *cells  # values, or bits of booleans, or where each text or list ends
    uint8_t *data  # of texts
    int32_t layout
    int32_t width
    int32_t space  # the column of the list whose items are the cells, -1 for rows
    Py_ssize_t least  # how many cells there are room for from the beginning
    Py_ssize_t cost  # what the cells of all rows take as soon as one is filled, in bytes
    Py_ssize_t *left  # how many bytes all columns of rows may take yet
    Py_ssize_t room  # for cells, a multiple of 64
    Py_ssize_t filled
    Py_ssize_t ended  # how many cells have been told where they end
    Py_ssize_t size  # of the data, or items of all lists
    Py_ssize_t data_room

cdef struct ColumnBuilders:
    const FillInstruction *code
    const int32_t *indexes
    ColumnBuilder *columns
    Py_ssize_t most  # bytes or items of a column
    Py_ssize_t most_room  # for the items of all lists and maps
    Py_ssize_t *room  # that these take


cdef int _add_room(ColumnBuilder *v, Py_ssize_t count) noexcept nogil:
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


cdef inline Py_ssize_t _cells_size(const ColumnBuilder *v, Py_ssize_t count) noexcept nogil:
    if v.layout == BITS:
        return (count + 7) >> 3
    if v.layout == ENDS:
        return 4 * (count + 1)
    return v.width * count


cdef inline int _mark(ColumnBuilder *v, Py_ssize_t place) noexcept nogil:
    """Say that a cell is not null, for which there is room from then on."""
    if place >= v.room and _add_room(v, place + 1):
        return LEFT
    v.bits[place >> 3] |= 1 << (place & 7)
    v.filled += 1
    return OK


cdef inline void _end_at(ColumnBuilder *v, Py_ssize_t place) noexcept nogil:
    """Say where the cells up to a place end, and that the next ones begin there."""
    cdef int32_t *ends = <int32_t *>v.cells
    while v.ended < place:
        v.ended += 1
        ends[v.ended] = <int32_t>v.size


cdef inline int _hold(
    ColumnBuilder *v, Py_ssize_t place, const uint8_t *start, Py_ssize_t size, Py_ssize_t most
) noexcept nogil:
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


cdef int _fill_text(Translation *t, const ColumnBuilders *s, const FillInstruction *f, Py_ssize_t place) noexcept nogil:
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


cdef int _fill_decimal(
    Translation *t, const ColumnBuilders *s, const FillInstruction *f, Py_ssize_t place
) noexcept nogil:
    """Fill a cell with an integer of 16 or 32 bytes, lowest first."""
    cdef ColumnBuilder *v = s.columns + f.column
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


cdef inline int _fill_name(
    Translation *t, ColumnBuilder *names, Py_ssize_t place, uint32_t own, Py_ssize_t most
) noexcept nogil:
    """Fill a cell with the name of an entry, which a map may have only once."""
    cdef Py_ssize_t size
    if _pass_size(t, &size) or not cdcavro_is_utf8(t.run.at - size, t.run.at):
        return LEFT
    return _add_name(&t.run, own, t.run.at - size, size) or _hold(names, place, t.run.at - size, size, most)


cdef int _fill_items(
    Translation *t, const ColumnBuilders *s, const FillInstruction *f, Py_ssize_t place
) noexcept nogil:
    """Fill a cell with the items of an array, or with the entries of a map, whose names have a column of their own."""
    cdef ColumnBuilder *v = s.columns + f.column
    cdef ColumnBuilder *names = NULL
    cdef int64_t read = 0, count, i
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
                if names != NULL and _fill_name(t, names, v.size, own, s.most):
                    return LEFT
                if _fill_cell(t, s, f.turn.a, v.size):
                    return LEFT
                v.size += 1
        if stop != NULL and t.run.at != stop:
            return LEFT


cdef int _fill_parts(
    Translation *t, const ColumnBuilders *s, const FillInstruction *f, Py_ssize_t place
) noexcept nogil:
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


cdef int _fill_whole(
    Translation *t, const ColumnBuilders *s, const FillInstruction *f, Py_ssize_t place
) noexcept nogil:
    """Fill a cell with an integer, or with the text of a symbol."""
    cdef ColumnBuilder *v = s.columns + f.column
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


cdef int _fill_cell(Translation *t, const ColumnBuilders *s, int node, Py_ssize_t place) noexcept nogil:
    """Read and check one datum by the instruction of its type, and fill the cell at a place with it."""
    cdef const FillInstruction *f = s.code + node
    cdef ColumnBuilder *v
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


cdef Py_ssize_t _fill_rows(
    Translation *t, const TranslationProgram *plan, const ColumnBuilders *s, const Column *column
) noexcept nogil:
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


cdef class Memory:
    """Bytes that the engine has put somewhere, which whoever takes the buffer reads there."""

    cdef uint8_t *_start
    cdef Py_ssize_t _size

    def __dealloc__(self):
        free(self._start)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self._start, self._size, 1, flags)


cdef object _hold_memory(uint8_t **start, Py_ssize_t size):
    """Return bytes as an object that holds them from then on, None if there are none."""
    cdef Memory memory
    cdef uint8_t *less
    if start[0] == NULL or size == 0:
        return None
    memory = Memory.__new__(Memory)
    less = <uint8_t *>realloc(start[0], size)
    memory._start, memory._size = start[0] if less == NULL else less, size
    start[0] = NULL
    return memory


cdef class Filler:
    """What one program (`column_program.ColumnProgram`) does with columns of payloads. Any threads may use it."""

    cdef TranslationProgram _plan
    cdef Py_ssize_t _most, _room, _room_for_a_byte, _rows_room
    cdef Py_ssize_t _count
    cdef bytes _code, _indexes, _limits, _texts, _columns

    def __cinit__(self, program):
        cdef TranslationProgram *plan = &self._plan
        self._code, self._indexes = program.code.tobytes(), program.indexes.tobytes()
        self._limits, self._texts, self._columns = program.limits.tobytes(), program.texts, program.columns.tobytes()
        plan.limits = <const int64_t *>PyBytes_AS_STRING(self._limits)
        plan.texts = <const uint8_t *>PyBytes_AS_STRING(self._texts)
        plan.root, plan.is_same = program.root, True
        plan.most_items, plan.most_weightless, self._most = program.bounds[:3]
        self._room, self._room_for_a_byte, self._rows_room = program.bounds[3:]
        self._count = len(program.columns) // 3

    def fill(self, column):
        """Read the payloads of a column (`Slices`) up to one that is left.

        Return what they fill, how many there are, and whether it is left because the columns of rows would take too
        much. Of each column of the program these are three buffers, or None for one that is not needed: which cells
        are not null, the cells, and their data; then how many cells there are, and how many are null. A column of rows
        that are all null has no buffers.
        """
        cdef Column values
        cdef Translation *t
        cdef ColumnBuilders s
        cdef Py_ssize_t taken, i, room = 0, left = self._rows_room + self._room_for_a_byte * <Py_ssize_t>column.size
        s.code = <const FillInstruction *>PyBytes_AS_STRING(self._code)
        s.indexes = <const int32_t *>PyBytes_AS_STRING(self._indexes)
        s.most = self._most
        s.room, s.most_room = &room, self._room + self._room_for_a_byte * <Py_ssize_t>column.size
        s.columns = <ColumnBuilder *>calloc(self._count + 1, sizeof(ColumnBuilder))
        if s.columns == NULL:
            raise MemoryError
        try:
            _open_column(&values, column)
            try:
                self._prepare(&s, values.count, &left)
                t = _borrow_translation()
                with nogil:
                    taken = _fill_rows(t, &self._plan, &s, &values)
                _return_translation(t)
                return ([] if taken < values.count else self._buffers(&s, taken)), taken, left < 0
            finally:
                _close_column(&values)
        finally:
            for i in range(self._count):
                free(s.columns[i].bits)
                free(s.columns[i].cells)
                free(s.columns[i].data)
            free(s.columns)

    cdef void _prepare(self, ColumnBuilders *s, Py_ssize_t rows, Py_ssize_t *left) noexcept:
        cdef const int32_t *said = <const int32_t *>PyBytes_AS_STRING(self._columns)
        cdef Py_ssize_t i
        for i in range(self._count):
            s.columns[i].layout, s.columns[i].width, s.columns[i].space = said[3 * i], said[3 * i + 1], said[3 * i + 2]
            if said[3 * i + 2] < 0:
                s.columns[i].least, s.columns[i].left = rows, left
                s.columns[i].cost = rows * max(s.columns[i].width, 1)

    cdef list _buffers(self, const ColumnBuilders *s, Py_ssize_t rows):
        cdef ColumnBuilder *v
        cdef Py_ssize_t i, count
        cdef list taken = []
        for i in range(self._count):
            v = s.columns + i
            count = rows if v.space < 0 else s.columns[v.space].size
            if v.space < 0 and v.filled == 0:
                taken.append((None, None, None, count, count))
                continue
            if (count > v.room or v.room == 0) and _add_room(v, count):
                raise MemoryError
            if v.layout == ENDS:
                _end_at(v, count)
            bits = _hold_memory(&v.bits, (count + 7) >> 3) if v.filled < count else None
            cells = _hold_memory(&v.cells, _cells_size(v, count))
            data = _hold_memory(&v.data, v.size)
            taken.append((bits, cells, data, count, count - v.filled))
        return taken
