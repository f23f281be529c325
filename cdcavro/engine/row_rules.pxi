# Rules for typed rows: cells are left out or masked, and rows kept by a condition on a cell, before they are written.


cdef extern from *:
    """
    /* The digits of a decimal as a mask digests them: no zeros behind the last figure, no point behind an integer.
       There is room for 48 bytes that end at `end`; returns where the text begins, and gives where it ends. */
    static inline uint8_t *cdcavro_figures(cdcavro_signed value, int scale, uint8_t *end, uint8_t **stop) {
        unsigned __int128 rest = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
        uint8_t *at = end;
        int places = 0;
        *stop = end;
        for (; places < scale; places++) {
            uint8_t digit = (uint8_t)(48 + (int)(rest % 10));
            rest /= 10;
            if (at != *stop || digit != 48) *--at = digit;
            else *stop = --at;
        }
        if (at != *stop) *--at = '.';
        do { *--at = (uint8_t)(48 + (int)(rest % 10)); rest /= 10; } while (rest);
        if (value < 0) *--at = '-';
        return at;
    }
    static inline int cdcavro_sign(cdcavro_signed value, cdcavro_signed floor, int is_whole) {
        return value > floor ? 1 : value < floor || !is_whole ? -1 : 0;
    }
    """
    uint8_t *cdcavro_figures(cdcavro_signed value, int scale, uint8_t *end, uint8_t **stop) noexcept nogil
    int cdcavro_sign(cdcavro_signed value, cdcavro_signed floor, int is_whole) noexcept nogil


cdef enum:  # RuleAction: what becomes of a cell, as in `program.py`
    RULE_KEEP, RULE_LEAVE_OUT, RULE_FILL, RULE_DIGEST

cdef enum:  # RuleSize: of a cell that takes no fixed number of bytes, as in `program.py`
    RULE_VARINT, RULE_SIZED

cdef enum:  # RuleText: what makes the text of a value, as in `program.py`
    TEXT_PYTHON, TEXT_BYTES, TEXT_WHOLE, TEXT_DECIMAL

cdef enum:  # RuleTest: how a row is kept, as in `program.py`
    TEST_NONE, TEST_UNKNOWN, TEST_NULL, TEST_NUMBER, TEST_TEXT, TEST_PYTHON

cdef enum:
    ROW_OMITTED = 2  # what becomes of a row, beside OK and LEFT
    SEEN_VALUES = 256  # of a masked column whose digests are known
    DIGEST_SIZE = 32
    MOST_SCALE = 38

cdef struct RuleCell:
    int action
    int size  # in bytes if it is fixed, else -1 and one of RuleSize behind it
    int kind
    int text
    int scale
    int seen  # where the values that were seen begin, of all cells; -1 for a cell that is not digested
    uint8_t null
    uint8_t some_made
    uint8_t null_made
    const uint8_t *name
    Py_ssize_t name_size
    const uint8_t *fill  # the cell that a constant makes
    Py_ssize_t fill_size

cdef struct SeenValue:  # a value of a column that payloads of this batch had, and where its mask stands
    const uint8_t *start
    Py_ssize_t size
    Py_ssize_t made

cdef struct RowImage:  # what is known of a row before or after a change
    int holds  # -1 if it does not say
    bint lacks

cdef struct RuledBatch:  # rows as they are given, and as they are written
    Column operations
    Column keys_given
    Column payloads_given
    Run *keys
    Run *payloads
    int32_t *key_ends
    int32_t *payload_ends
    uint8_t *outcomes
    uint8_t *lacks


cdef class RowRules:
    """Rules for the rows of a version of a table.

    Made from its cells, as `CellRule` in `program.py` has them, the places of those of the key among them, and the
    condition for rows, as `RowTest`, None if there is none.
    """

    cdef RuleCell *cells
    cdef int32_t *key
    cdef int count
    cdef int key_count
    cdef int seen_count
    cdef bint is_protecting
    cdef list kept  # what cells refer to
    cdef int test
    cdef int tested
    cdef int signs  # of a comparison for which it holds: 1 for less, 2 for equal, 4 for greater
    cdef int64_t floor[2]
    cdef bint is_whole
    cdef bytes constant
    cdef object holds

    def __cinit__(self, list cells, list key, condition):
        self.count, self.key_count = len(cells), len(key)
        self.cells = <RuleCell *>calloc(self.count + 1, sizeof(RuleCell))
        self.key = <int32_t *>calloc(self.key_count + 1, sizeof(int32_t))
        if self.cells == NULL or self.key == NULL:
            raise MemoryError
        self.kept = cells
        for i, cell in enumerate(cells):
            self._add(self.cells + <int>i, cell)
        for i, place in enumerate(key):
            if not 0 <= place < self.count:
                raise ValueError("cells of a key that there are")
            self.key[<int>i] = place
        self._take_test(condition)

    def __dealloc__(self):
        free(self.cells)
        free(self.key)

    cdef int _add(self, RuleCell *cell, given) except -1:
        cell.action, cell.size, cell.kind, cell.null = given.action, given.size, given.kind, given.null
        cell.some_made, cell.null_made = given.some_made, given.null_made
        cell.text, cell.scale, cell.seen = given.text, given.scale, -1
        cell.name, cell.name_size = _start(given.name), len(given.name)
        cell.fill, cell.fill_size = _start(given.fill), len(given.fill)
        if cell.action != RULE_KEEP:
            self.is_protecting = True
        if cell.text == TEXT_DECIMAL and not 0 <= cell.scale <= MOST_SCALE:
            cell.text = TEXT_PYTHON
        if cell.action == RULE_DIGEST:
            cell.seen = self.seen_count
            self.seen_count += SEEN_VALUES
        return 0

    cdef int _take_test(self, given) except -1:
        self.test, self.constant = TEST_NONE, b""
        if given is None:
            return 0
        self.test, self.tested, self.signs = given.test, given.cell, given.signs
        self.floor[0], self.floor[1], self.is_whole = given.floor[0], given.floor[1], given.is_whole
        self.constant, self.holds = given.constant, given.holds
        if self.test != TEST_UNKNOWN and not 0 <= self.tested < self.count:
            raise ValueError("a cell that there is")
        return 0


# The text of a value, its digest and the cells of a row.

cdef int _pass_cell(Run *r, const RuleCell *cell, bint *is_null) noexcept nogil:
    """Pass a cell by."""
    cdef int64_t value
    if r.at >= r.end:
        return LEFT
    is_null[0] = r.at[0] == cell.null
    r.at += 1
    if is_null[0]:
        return OK
    if cell.size >= 0:
        return _skip_bytes(r, cell.size)
    return _skip_text(r) if cell.kind == RULE_SIZED else _read_long(r, &value)


cdef bytes _value_text(Run *r, const RuleCell *cell, given, const uint8_t *start, const uint8_t *end):
    """Return the text of a value, as `value_text` of the exact way has it. What `r` reads then is not what it read."""
    cdef Py_ssize_t size = r.size
    cdef int64_t value
    cdef uint8_t figures[48]
    cdef uint8_t *text
    cdef uint8_t *stop
    cdef cdcavro_signed wide
    cdef bytes made
    r.at, r.end = start, end
    if cell.text != TEXT_PYTHON and not _read_long(r, &value):
        if cell.text == TEXT_BYTES:
            return PyBytes_FromStringAndSize(<const char *>r.at, end - r.at)
        if cell.text == TEXT_WHOLE:
            # Its digits stand behind what is written for a moment.
            if _render_digits(r, value):
                raise MemoryError
            made = PyBytes_FromStringAndSize(<const char *>r.out + size, r.size - size)
            r.size = size
            return made
        if cdcavro_of_bytes(r.at, end - r.at, &wide):
            text = cdcavro_figures(wide, cell.scale, figures + 48, &stop)
            return PyBytes_FromStringAndSize(<const char *>text, stop - text)
    return given.read(PyBytes_FromStringAndSize(<const char *>start, end - start))


cdef int _put_digest(Run *r, const RuleCell *cell, given, const uint8_t *start, const uint8_t *end) except -1:
    """Put out the digest of a value's text in place of the value."""
    cdef const uint8_t *at = r.at
    cdef const uint8_t *stop = r.end
    cdef bytes text = _value_text(r, cell, given, start, end)
    cdef const uint8_t *digest
    cdef int i, half
    r.at, r.end = at, stop
    for copy in given.copies:
        hashed = copy()
        hashed.update(text)
        text = hashed.digest()
    if PyBytes_GET_SIZE(text) != DIGEST_SIZE:
        raise ValueError("a digest of 32 bytes")
    digest = <const uint8_t *>PyBytes_AS_STRING(text)
    if _put(r, cell.some_made) or _put_long(r, 2 * DIGEST_SIZE) or _reserve(r, 2 * DIGEST_SIZE):
        raise MemoryError
    for i in range(2 * DIGEST_SIZE):
        half = digest[i >> 1] & 15 if i & 1 else digest[i >> 1] >> 4
        r.out[r.size + i] = <uint8_t>(48 + half if half < 10 else 87 + half)
    r.size += 2 * DIGEST_SIZE
    return OK


cdef int _put_masked(
    Run *r, Run *payloads, SeenValue *seen, const RuleCell *cell, given, const uint8_t *start
) except -1:
    """Put out the mask of a value, which ends where `r` reads. One that a payload has had is copied from there."""
    cdef const uint8_t *end = r.at
    cdef Py_ssize_t size = end - start, made = r.size
    if cell.action == RULE_FILL:
        return _put_bytes(r, cell.fill, cell.fill_size)
    seen += cell.seen + <int>(cdcavro_hash(start, size) % SEEN_VALUES)
    if seen.start != NULL and seen.size == size and memcmp(seen.start, start, size) == 0:
        # A branch, the length of 64 in two bytes, and the digest.
        if _reserve(r, 3 + 2 * DIGEST_SIZE):
            raise MemoryError
        memcpy(r.out + r.size, payloads.out + seen.made, 3 + 2 * DIGEST_SIZE)
        r.size += 3 + 2 * DIGEST_SIZE
        return OK
    _put_digest(r, cell, given, start, end)
    if r == payloads:
        seen.start, seen.size, seen.made = start, size, made
    return OK


cdef int _put_ruled(RowRules rules, Run *r, Run *payloads, SeenValue *seen, bint is_key) except -1:
    """Put out the cells of a row or a key. One with a value that its type cannot carry is left."""
    cdef const uint8_t *start = r.at
    cdef const uint8_t *first
    cdef const RuleCell *cell
    cdef bint is_null
    cdef int i, place
    for i in range(rules.key_count if is_key else rules.count):
        place = rules.key[i] if is_key else i
        cell, first = rules.cells + place, r.at
        if _pass_cell(r, cell, &is_null):
            return LEFT
        if cell.action == RULE_KEEP:
            continue
        if _put_bytes(r, start, first - start):
            return LEFT
        start = r.at
        if cell.action == RULE_LEAVE_OUT:
            continue
        if is_null:
            if _put(r, cell.null_made):
                return LEFT
        elif _put_masked(r, payloads, seen, cell, rules.kept[place], first + 1):
            return LEFT
    if r.at >= r.end or r.at[0] or _put_bytes(r, start, r.at - start):
        return LEFT
    r.at += 1
    return _put(r, 0)


cdef bint _is_left_out(RowRules rules, const uint8_t *name, Py_ssize_t size) noexcept nogil:
    """Return whether a column is left out."""
    cdef const RuleCell *cell
    cdef int i
    for i in range(rules.count):
        cell = rules.cells + i
        if cell.action == RULE_LEAVE_OUT and cell.name_size == size and memcmp(cell.name, name, size) == 0:
            return True
    return False


cdef int _put_lacking(RowRules rules, Run *r, bint *lacks) noexcept nogil:
    """Put out the names of the columns that a row lacks, without those that are left out."""
    cdef const uint8_t *begin = r.at
    cdef const uint8_t *name
    cdef Py_ssize_t size
    cdef int64_t count, i, kept = 0
    lacks[0] = False
    if _read_long(r, &count) or count < 0 or count > r.end - r.at:
        return LEFT
    if count == 0:
        return _put(r, 0)
    for i in range(count):
        if _read_string(r, &name, &size):
            return LEFT
        kept += not _is_left_out(rules, name, size)
    if _read_end(r):
        return LEFT
    lacks[0] = kept > 0
    if kept == count:
        return _put_bytes(r, begin, r.at - begin)
    if kept == 0:
        return _put(r, 0)
    r.at = begin
    if _read_long(r, &count) or _put_long(r, kept):
        return LEFT
    for i in range(count):
        if _read_string(r, &name, &size):
            return LEFT
        if not _is_left_out(rules, name, size) and (_put_long(r, size) or _put_bytes(r, name, size)):
            return LEFT
    return _read_end(r) or _put(r, 0)


cdef int _put_envelope(RowRules rules, Run *r, SeenValue *seen, bint *lacks) except -1:
    """Put out an envelope as it is written, and say whether the row after the change lacks columns."""
    cdef int i
    for i in range(2):
        lacks[0] = False
        if r.at >= r.end or _put(r, r.at[0]):
            return LEFT
        r.at += 1
        if r.at[-1] and (_put_ruled(rules, r, r, seen, False) or _put_lacking(rules, r, lacks)):
            return LEFT
    return _put_bytes(r, r.at, r.end - r.at)


# Conditions on rows.

cdef int _holds(
    RowRules rules, Run *r, const RuleCell *cell, given, const uint8_t *start, const uint8_t *end
) except -2:
    """Return whether the condition holds for a value that is not null; -1 if the engine cannot say.

    What `r` reads then is not what it read.
    """
    cdef cdcavro_signed wide
    cdef int64_t value
    cdef Py_ssize_t size = PyBytes_GET_SIZE(rules.constant)
    cdef int sign
    if rules.test == TEST_PYTHON or (rules.test == TEST_NUMBER and cell.text == TEXT_PYTHON):
        return 1 if rules.holds(_value_text(r, cell, given, start, end)) else 0
    r.at, r.end = start, end
    if _read_long(r, &value):
        return -1
    if rules.test == TEST_TEXT:
        sign = memcmp(r.at, PyBytes_AS_STRING(rules.constant), min(end - r.at, size))
        if sign == 0:
            sign = (end - r.at > size) - (end - r.at < size)
    else:
        if cell.text == TEXT_WHOLE:
            wide = cdcavro_widened(value)
        elif not cdcavro_of_bytes(r.at, end - r.at, &wide):
            return -1
        sign = cdcavro_sign(wide, cdcavro_joined(rules.floor[0], rules.floor[1]), rules.is_whole)
    return rules.signs >> (0 if sign < 0 else 1 if sign == 0 else 2) & 1


cdef int _pass_lacking(Run *r, const RuleCell *tested, RowImage *image, bint *is_lacking) noexcept nogil:
    """Pass the names of the columns that a row lacks by, and say whether one is that of the condition."""
    cdef const uint8_t *name
    cdef Py_ssize_t size
    cdef int64_t count, i
    is_lacking[0] = False
    if _read_long(r, &count) or count < 0 or count > r.end - r.at:
        return LEFT
    for i in range(count):
        if _read_string(r, &name, &size):
            return LEFT
        if size == tested.name_size and memcmp(name, tested.name, size) == 0:
            is_lacking[0] = True
    image.lacks = count > 0
    return _read_end(r) if count else OK


cdef int _take_image_state(RowRules rules, Run *r, RowImage *image) except -1:
    """Say of a row whether the condition holds, and whether it lacks columns."""
    cdef const uint8_t *first
    cdef const uint8_t *start = NULL
    cdef const uint8_t *end = NULL
    cdef const uint8_t *end_of_row
    cdef bint is_null, was_null = False, is_lacking
    cdef int i
    image.holds, image.lacks = -1, False
    if r.at >= r.end:
        return LEFT
    r.at += 1
    if r.at[-1] == 0:
        return OK
    for i in range(rules.count):
        first = r.at
        if _pass_cell(r, rules.cells + i, &is_null):
            return LEFT
        if i == rules.tested:
            start, end, was_null = first + 1, r.at, is_null
    # A value that its type cannot carry is left.
    if r.at >= r.end or r.at[0]:
        return LEFT
    r.at += 1
    if _pass_lacking(r, rules.cells + rules.tested, image, &is_lacking):
        return LEFT
    if was_null:
        image.holds = -1 if is_lacking else rules.test == TEST_NULL and rules.signs == 1
        return OK
    if rules.test == TEST_NULL:
        image.holds = rules.signs == 0
        return OK
    first, end_of_row = r.at, r.end
    image.holds = _holds(rules, r, rules.cells + rules.tested, rules.kept[rules.tested], start, end)
    r.at, r.end = first, end_of_row
    return OK


cdef int _decide(RowRules rules, Run *r, uint8_t operation) except -1:
    """Return OK for a row that is kept as it is, ROW_OMITTED for one that is not, LEFT if the exact way has to say."""
    cdef RowImage before, after
    cdef const uint8_t *start = r.at
    if rules.test == TEST_NONE or operation not in b"crud":
        return OK
    if rules.test == TEST_UNKNOWN or _take_image_state(rules, r, &before) or _take_image_state(rules, r, &after):
        return LEFT
    r.at = start
    if operation == c'd':
        return ROW_OMITTED if before.holds == 0 else OK
    if after.holds < 0:
        return LEFT
    if operation != c'u':
        return OK if after.holds else ROW_OMITTED
    if after.holds:
        return OK if before.holds == 1 or (before.holds < 0 and not after.lacks) else LEFT
    return ROW_OMITTED if before.holds == 0 else LEFT


# Rows of a batch.

cdef int _rule_row(RowRules rules, RuledBatch *batch, SeenValue *seen, uint8_t operation, uint8_t *lacks) except -1:
    """Put out the row that is read as its rules have it; return OK, ROW_OMITTED or LEFT."""
    cdef Run *keys = batch.keys
    cdef Run *payloads = batch.payloads
    cdef bint is_lacking = lacks[0]
    cdef int outcome
    if rules is not None and payloads.at < payloads.end:
        outcome = _decide(rules, payloads, operation)
        if outcome != OK:
            return outcome
        if rules.is_protecting:
            if _put_envelope(rules, payloads, seen, &is_lacking):
                return LEFT
            lacks[0] = is_lacking
            if keys.at != NULL and _put_ruled(rules, keys, payloads, seen, True):
                return LEFT
            return OK if keys.at == NULL else _put_bytes(keys, keys.at, keys.end - keys.at)
    if _put_bytes(payloads, payloads.at, payloads.end - payloads.at):
        return LEFT
    return OK if keys.at == NULL else _put_bytes(keys, keys.at, keys.end - keys.at)


cdef int _rule_next(RowRules rules, RuledBatch *batch, SeenValue *seen, Py_ssize_t i) except -1:
    """Take a row of the batch; nothing of one that is left or left out is written."""
    cdef Run *keys = batch.keys
    cdef Run *payloads = batch.payloads
    cdef ColumnValue given
    cdef Py_ssize_t key = keys.size, payload = payloads.size
    cdef uint8_t operation = 0, lacks = batch.lacks[i]
    cdef int outcome
    if _column_value(&batch.operations, i, &given):
        raise ValueError("operations within their column")
    if given.size == 1:
        operation = given.start[0]
    if _column_value(&batch.keys_given, i, &given):
        raise ValueError("keys within their column")
    keys.at, keys.end = given.start, given.start + given.size
    if _column_value(&batch.payloads_given, i, &given) or given.start == NULL:
        raise ValueError("payloads within their column")
    payloads.at, payloads.end = given.start, given.start + given.size
    outcome = _rule_row(rules, batch, seen, operation, &lacks)
    if outcome == OK and (keys.size > INT32_MAX or payloads.size > INT32_MAX):
        outcome = LEFT
    if outcome == OK:
        batch.lacks[i] = lacks
    else:
        if payloads.size != payload and rules is not None:
            # What was written is overwritten by the next row.
            memset(seen, 0, rules.seen_count * sizeof(SeenValue))
        keys.size, payloads.size = key, payload
    batch.outcomes[i] = outcome
    batch.key_ends[i + 1], batch.payload_ends[i + 1] = <int32_t>keys.size, <int32_t>payloads.size
    return 0


cdef int _rule_all(list rules, bytes plans, RuledBatch *batch, list seen) except -1:
    """Take all rows of the batch, each by the rules whose number it has."""
    cdef const int32_t *plan = <const int32_t *>PyBytes_AS_STRING(plans)
    cdef Py_ssize_t count = batch.payloads_given.count, i
    cdef bytearray own
    if PyBytes_GET_SIZE(plans) != 4 * count or batch.keys_given.count != count or batch.operations.count != count:
        raise ValueError("columns of as many rows")
    for i in range(count):
        if not 0 <= plan[i] < len(rules):
            raise ValueError("rules that there are")
        own = seen[plan[i]]
        _rule_next(rules[plan[i]], batch, <SeenValue *>PyByteArray_AS_STRING(own), i)
    return 0


def apply_rules(list rules not None, bytes plans not None, operations, keys, payloads, bytes lacks not None):
    """Return the rows of a batch as they are written by rules (`RowRules`, None for rows that have none).

    `plans` has the number of each row's rules, as 32-bit integers; `operations`, `keys` and `payloads` are columns
    (`Slices`), and `lacks` has a byte for each row, 1 if it lacks columns. Returned are a byte for each row: 0 if it is
    written, 1 if the exact way has to say, 2 if it is left out; then where each key ends, from 0 on, and the keys; the
    same of the payloads; and `lacks`. Of rows that are not written, key and payload have no bytes.
    """
    cdef RuledBatch batch
    cdef Py_ssize_t count = PyBytes_GET_SIZE(lacks)
    cdef bytearray outcomes = bytearray(count), is_lacking = bytearray(lacks)
    cdef bytearray key_ends = bytearray(4 * count + 4), payload_ends = bytearray(4 * count + 4)
    memset(&batch, 0, sizeof(RuledBatch))
    try:
        _open_column(&batch.operations, operations)
        _open_column(&batch.keys_given, keys)
        _open_column(&batch.payloads_given, payloads)
        if batch.payloads_given.count != count:
            raise ValueError("columns of as many rows")
        batch.keys, batch.payloads = <Run *>calloc(1, sizeof(Run)), <Run *>calloc(1, sizeof(Run))
        if batch.keys == NULL or batch.payloads == NULL or _reserve(batch.keys, 1) or _reserve(batch.payloads, 1):
            raise MemoryError
        batch.outcomes = <uint8_t *>PyByteArray_AS_STRING(outcomes)
        batch.lacks = <uint8_t *>PyByteArray_AS_STRING(is_lacking)
        batch.key_ends = <int32_t *>PyByteArray_AS_STRING(key_ends)
        batch.payload_ends = <int32_t *>PyByteArray_AS_STRING(payload_ends)
        seen = [bytearray(0 if one is None else (<RowRules?>one).seen_count * sizeof(SeenValue)) for one in rules]
        _rule_all(rules, plans, &batch, seen)
        made_keys = PyBytes_FromStringAndSize(<const char *>batch.keys.out, batch.keys.size)
        made_payloads = PyBytes_FromStringAndSize(<const char *>batch.payloads.out, batch.payloads.size)
        return outcomes, key_ends, made_keys, payload_ends, made_payloads, is_lacking
    finally:
        _tear_down(batch.keys)
        _tear_down(batch.payloads)
        _close_column(&batch.operations)
        _close_column(&batch.keys_given)
        _close_column(&batch.payloads_given)
