# Columns in Arrow's layout as Python holds them.

cdef class Memory:
    """Bytes that the engine has put somewhere, which whoever takes the buffer reads there."""

    cdef uint8_t *_start
    cdef Py_ssize_t _size

    def __dealloc__(self):
        free(self._start)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self._start, self._size, 1, flags)


cdef object _held_memory(uint8_t **start, Py_ssize_t size):
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

    cdef Plan _plan
    cdef Py_ssize_t _most, _room, _room_for_a_byte, _rows_room
    cdef Py_ssize_t _count
    cdef bytes _code, _indexes, _limits, _texts, _columns

    def __cinit__(self, program):
        cdef Plan *plan = &self._plan
        self._code, self._indexes = program.code.tobytes(), program.indexes.tobytes()
        self._limits, self._texts, self._columns = program.limits.tobytes(), program.texts, program.columns.tobytes()
        plan.limits = <const int64_t *>PyBytes_AS_STRING(self._limits)
        plan.texts = <const uint8_t *>PyBytes_AS_STRING(self._texts)
        plan.root, plan.is_same = program.root, True
        plan.most_items, plan.most_weightless, self._most, self._room, self._room_for_a_byte, self._rows_room = program.bounds
        self._count = len(program.columns) // 3

    def fill(self, column):
        """Read the payloads of a column (`Slices`); return what they fill, how many there were before one that is left, and why.

        That is whether the columns of rows would take too much. Of each column of the program it is three buffers, or None for one that is not needed: which cells are not null,
        the cells, and their data; and how many cells there are, and how many are null. One of rows that are all null has
        no buffers.
        """
        cdef Column values
        cdef Transit *t
        cdef Vessels s
        cdef Py_ssize_t taken, i, room = 0, left = self._rows_room + self._room_for_a_byte * <Py_ssize_t>column.size
        s.code = <const Filling *>PyBytes_AS_STRING(self._code)
        s.indexes = <const int32_t *>PyBytes_AS_STRING(self._indexes)
        s.most = self._most
        s.room, s.most_room = &room, self._room + self._room_for_a_byte * <Py_ssize_t>column.size
        s.columns = <Vessel *>calloc(self._count + 1, sizeof(Vessel))
        if s.columns == NULL:
            raise MemoryError
        try:
            _open_column(&values, column)
            try:
                self._prepare(&s, values.count, &left)
                t = _borrowed_transit()
                with nogil:
                    taken = _fill_rows(t, &self._plan, &s, &values)
                _give_back(t)
                return ([] if taken < values.count else self._taken(&s, taken)), taken, left < 0
            finally:
                _close_column(&values)
        finally:
            for i in range(self._count):
                free(s.columns[i].bits)
                free(s.columns[i].cells)
                free(s.columns[i].data)
            free(s.columns)

    cdef void _prepare(self, Vessels *s, Py_ssize_t rows, Py_ssize_t *left) noexcept:
        cdef const int32_t *said = <const int32_t *>PyBytes_AS_STRING(self._columns)
        cdef Py_ssize_t i
        for i in range(self._count):
            s.columns[i].layout, s.columns[i].width, s.columns[i].space = said[3 * i], said[3 * i + 1], said[3 * i + 2]
            if said[3 * i + 2] < 0:
                s.columns[i].least, s.columns[i].left = rows, left
                s.columns[i].cost = rows * max(s.columns[i].width, 1)

    cdef list _taken(self, const Vessels *s, Py_ssize_t rows):
        cdef Vessel *v
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
            if v.layout == CELL_ENDS:
                _end_at(v, count)
            bits = _held_memory(&v.bits, (count + 7) >> 3) if v.filled < count else None
            cells = _held_memory(&v.cells, _cells_size(v, count))
            data = _held_memory(&v.data, v.size)
            taken.append((bits, cells, data, count, count - v.filled))
        return taken


def payload_ends(Translator translator not None, bytes payloads not None, Py_ssize_t count):
    """Return where each of a number of payloads that stand one behind another ends, as 32-bit integers; None if one is left.

    The translator is one that checks them.
    """
    cdef const uint8_t *start = _start(payloads)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(payloads)
    cdef bytes ends
    cdef Transit *t
    cdef int32_t *places
    cdef Py_ssize_t i = 0
    if not 0 <= count <= size or size > INT32_MAX or not translator._plan.is_same:
        return None
    ends = PyBytes_FromStringAndSize(NULL, 4 * count)
    places = <int32_t *>PyBytes_AS_STRING(ends)
    t = _borrowed_transit()
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
    _give_back(t)
    return ends if i == count else None
