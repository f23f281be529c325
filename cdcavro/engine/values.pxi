# Records of Python's own values, to payloads and back; what has to be noted in the extras is left to the exact way.

cdef class Values:
    """The engine of one program for records: dicts, lists and scalars. Several threads may use it."""

    cdef Run *_spare
    cdef bytes _code
    cdef bytes _fields
    cdef bytes _places
    cdef bytes _texts
    cdef int _root
    cdef int64_t _items
    cdef list _names  # of members, by the numbers of their rows
    cdef list _symbols  # by where they stand in the program's
    cdef dict _known  # for a record with a rest, the names of its members
    cdef list _kept  # names of columns and the like, which recur

    def __cinit__(self, program):
        cdef const Instruction *code
        cdef const Member *member
        cdef const int32_t *places
        cdef Py_ssize_t i
        cdef int j
        self._code, self._fields = program.code.tobytes(), program.fields.tobytes()
        self._places, self._texts = program.symbols.tobytes(), program.texts + bytes(SLACK)
        self._root, self._items = program.root, program.bounds[1]
        self._kept = [None] * MOST_KEPT_NAMES
        self._names, self._symbols, self._known = [], [None] * len(program.symbols), {}
        member = <const Member *>PyBytes_AS_STRING(self._fields)
        for i in range(len(self._fields) // sizeof(Member)):
            self._names.append(self._texts[member[i].label + 1 : member[i].label + member[i].size - 2].decode())
        code = <const Instruction *>PyBytes_AS_STRING(self._code)
        places = <const int32_t *>PyBytes_AS_STRING(self._places)
        for i in range(len(self._code) // sizeof(Instruction)):
            if code[i].kind == ENUM:
                for j in range(code[i].a[0], code[i].a[0] + 2 * code[i].a[1], 2):
                    self._symbols[j] = self._texts[places[j] + 1 : places[j] + places[j + 1] - 1].decode()
            elif code[i].kind == RECORD and code[i].a[2] >= 0:
                self._known[i] = frozenset(
                    self._names[j] for j in range(code[i].a[0], code[i].a[0] + code[i].a[1]) if member[j].size
                )

    def __dealloc__(self):
        _tear_down(self._spare)

    def write(self, record):
        """Return a record as a payload; None where it is left to the exact way, as whatever is faulty is."""
        cdef Run *r
        cdef bytes payload = None
        if self._root < 0:
            return None
        r = self._borrowed()
        try:
            if _put_record(self, r, self._root, record, 1) == OK and _put(r, 0) == OK:
                payload = PyBytes_FromStringAndSize(<const char *>r.out, r.size)
        except (MessageError, UnicodeError, RecursionError):
            pass
        finally:
            self._given_back(r)
        return payload

    def read(self, bytes raw, Py_ssize_t position=0):
        """Return the record of the payload at a position, and the position after it; None where it is left to the exact way."""
        cdef Run *r
        cdef object record = _LEFT
        if not 0 <= position <= PyBytes_GET_SIZE(raw):
            raise ValueError("the payload at a position")
        if self._root < 0:
            return None
        r = self._borrowed()
        r.at, r.end = _start(raw) + position, _start(raw) + PyBytes_GET_SIZE(raw)
        r.items_left = r.end - r.at
        try:
            record = _take_record(self, r, self._root, 1)
            position = r.at - _start(raw)
        except (MessageError, UnicodeError, RecursionError):
            pass
        finally:
            self._given_back(r)
        return None if record is _LEFT else (record, position)

    cdef Run *_borrowed(self) except NULL:
        """Return the state of a run that nobody else uses."""
        cdef Run *r = self._spare
        self._spare = NULL
        if r == NULL:
            r = <Run *>calloc(1, sizeof(Run))
            if r == NULL:
                raise MemoryError
            r.code = <const Instruction *>PyBytes_AS_STRING(self._code)
            r.members = <const Member *>PyBytes_AS_STRING(self._fields)
            r.symbols = <const int32_t *>PyBytes_AS_STRING(self._places)
            r.texts = <const uint8_t *>PyBytes_AS_STRING(self._texts)
            r.most_items = self._items
        r.size = 0
        return r

    cdef void _given_back(self, Run *r) noexcept:
        if self._spare != NULL or r.room > KEPT:
            _tear_down(r)
        else:
            self._spare = r
