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
    cdef dict _structs  # of which records are written, and the nodes of these
    cdef dict _tuples  # that were written, by identity, and their bytes
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
        self._structs, self._tuples = {}, {}
        member = <const Member *>PyBytes_AS_STRING(self._fields)
        for i in range(len(self._fields) // sizeof(Member)):
            self._names.append(intern(self._texts[member[i].label + 1 : member[i].label + member[i].size - 2].decode()))
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

    cdef bint _is_shaped(self, int node, object struct) except -1:
        """Return whether a Struct has the fields that a record has as members, and no others."""
        cdef const Instruction *record = <const Instruction *>PyBytes_AS_STRING(self._code) + node
        cdef const Member *member = <const Member *>PyBytes_AS_STRING(self._fields)
        cdef int i
        names = {self._names[i] for i in range(record.a[0], record.a[0] + record.a[1]) if member[i].missing != EXTRAS}
        return record.a[2] < 0 and names == set(struct.__struct_fields__)

    def write(self, record):
        """Return a record as a payload; None where it is left to the exact way, as whatever is faulty is."""
        return self._written(record, False)

    def write_struct(self, struct):
        """Return a frozen Struct of the record's fields as a payload, None as `write`.

        A field that is None stands for no member, a tuple for a list, and another Struct for its record.
        """
        return self._written(struct, True)

    cdef bytes _written(self, object record, bint is_struct):
        cdef Run *r
        cdef bytes payload = None
        cdef int left
        if self._root < 0:
            return None
        r = self._borrowed()
        try:
            left = _put_struct(self, r, self._root, record, 1) if is_struct else _put_record(self, r, self._root, record, 1)
            if left == OK and _put(r, 0) == OK:
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
