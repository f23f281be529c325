# Messages as typed rows: of each message its pattern, of each pattern the table, and of each row its key and envelope.


cdef enum:  # which row a change becomes: its only one, or one of the two that an update of a key becomes
    WHOLE_CHANGE, MOVED_AWAY, MOVED_HERE


cdef struct MadeRow:
    int32_t message
    int32_t pattern
    Py_ssize_t key  # where they end
    Py_ssize_t payload
    bint is_keyed
    Py_ssize_t order
    bint lacks  # columns of the row after the change
    int part  # of an update that moves a key

cdef struct Typing:  # the state of turning messages into rows
    Run *run
    bint is_change  # messages are payloads of changes, each of one row
    bint is_read  # messages are payloads already, with nothing for a head that is known
    bint is_lined  # a message is several in lines, and an empty line a change without rows
    int64_t line_row  # the number of the first row of the line in its message
    Py_ssize_t common  # bytes that each row of the last message or line repeats
    Py_ssize_t most_absent  # bytes of the names of columns that a row of the message does not have, at most
    int64_t number  # of a change's row in its message, and how many this has
    int64_t count
    Run *fixed
    Run *keys
    Run *payloads
    Run *said  # of a message before its tables are known
    Slot slots[PARTS]
    bint has_numbers  # large entries stand in patterns by their numbers, which are those of this engine only
    Large large[MOST_LARGE]
    int large_count
    int large_last
    Py_ssize_t large_bytes
    const uint8_t *head  # what the schema in the head of brief texts adds to a pattern
    Py_ssize_t head_size
    const uint8_t *key_names[MOST_KEYS]
    Py_ssize_t key_sizes[MOST_KEYS]
    Token key_values[MOST_KEYS]
    int key_count
    Py_ssize_t loose  # bytes that each row repeats and that do not belong to the pattern
    Token *before
    Token *after
    Py_ssize_t *starts
    Py_ssize_t room
    uint64_t row
    bint lacks_nulls  # a null in the row says nothing of its column
    int64_t event
    int64_t system
    bint has_event
    bint has_system
    int64_t numbers[MOST_NUMBERS]
    int number_count
    MadeRow *made
    Py_ssize_t made_count
    Py_ssize_t made_room
    const uint8_t *words  # texts that stand for a value which the source did not give
    const int32_t *word_ends
    int word_count
    const int64_t *zone
    Py_ssize_t zones
    const uint8_t *place
    Py_ssize_t place_size
    Ordering order


# Row images: the columns of a row found by name, and written as the record of its table's version.

cdef int _cell_of(const Pattern *p, int expected, const uint8_t *name, Py_ssize_t size) noexcept nogil:
    """Return the number of the cell of a column, -1 for an unknown one; it is most likely the expected one."""
    cdef const Cell *cell
    cdef uint64_t slot
    cdef int probes = 0
    if expected < p.count:
        cell = p.cells + expected
        if cell.size == size and memcmp(p.facts.texts + cell.name, name, size) == 0 and cell.op != OP_GONE:
            return expected
    slot = cdcavro_hash(name, size)
    while True:
        slot &= p.index_room - 1
        if p.index[slot] < 0 or probes > <int>p.index_room:
            return -1
        cell = p.cells + p.index[slot]
        if cell.size == size and memcmp(p.facts.texts + cell.name, name, size) == 0:
            return p.index[slot]
        slot += 1
        probes += 1


cdef inline bint _is_mark(const Run *r, const uint8_t *name, Py_ssize_t size) noexcept nogil:
    """Return whether a member of a row may say of a column that it is not stated, by the end of its name."""
    cdef const Instruction *root = r.code + r.root
    return root.a[5] > 0 and size > root.a[5] and memcmp(name + size - root.a[5], r.texts + root.a[4], root.a[5]) == 0


cdef inline bint _says_nothing(const Typing *t, int values, const uint8_t *start) noexcept nogil:
    """Return whether a value is a null that says nothing of its column."""
    return t.lacks_nulls and start[0] == t.run.code[values].a[0] << 1


cdef int _take_image(
    Typing *t, Pattern *p, const uint8_t *start, const uint8_t *end, int values, Token *tokens
) noexcept nogil:
    """Find the columns of a row image by their names; a later image's values go over those of the one before."""
    cdef Run *r = t.run
    cdef int64_t count, i, size
    cdef const uint8_t *name
    cdef int cell, last = 0
    r.at, r.end = start, end
    if _read_long(r, &count) or count < 0 or count > r.end - r.at:
        return LEFT
    for i in range(count):
        if _read_long(r, &size) or size < 0 or size > r.end - r.at:
            return LEFT
        name = r.at
        r.at += size
        cell = _cell_of(p, p.follows[last], name, size)
        if cell < 0 or _is_mark(r, name, size):
            return LEFT
        p.follows[last] = cell
        last = cell + 1
        tokens[cell].start = r.at
        if _skip(r, values) or _is_word(t, r.code + values, tokens[cell].start, r.at):
            return LEFT
        tokens[cell].end = r.at
        if not _says_nothing(t, values, tokens[cell].start):
            tokens[cell].row = t.row
    return _read_end(r) if count else OK


cdef bint _is_word(Typing *t, const Instruction *column, const uint8_t *start, const uint8_t *end) noexcept nogil:
    """Return whether a value may stand for one that the source did not give."""
    cdef int i, index = start[0] >> 1
    cdef int32_t first = 0, size
    if t.word_count == 0:
        return False
    if index == column.a[6]:
        return True
    if index != column.a[4]:
        return False
    for i in range(t.word_count):
        # Behind the branch stands a length, in one byte or more, and the text is the rest.
        size = t.word_ends[i] - first
        if end - start > size and memcmp(end - size, t.words + first, size) == 0:
            return True
        first = t.word_ends[i]
    return False


cdef int _put_image(
    Typing *t, const Pattern *p, int values, const Token *tokens, const Token *before, Py_ssize_t *starts
) noexcept nogil:
    """Put out a row; a value that an earlier row of the same payload has is copied from there."""
    cdef Run *o = t.payloads
    cdef const Cell *cell
    cdef int i, absent = 0
    cdef Py_ssize_t start, size
    for i in range(p.count):
        cell = p.cells + i
        start = o.size
        if cell.op == OP_GONE:
            if _put(o, <uint8_t>cell.null):
                return LEFT
        elif tokens[i].row != t.row:
            absent += 1
            if _put(o, <uint8_t>cell.null):
                return LEFT
        elif before != NULL and before[i].row == t.row and before[i].start == tokens[i].start:
            size = starts[i + 1] - starts[i]
            if _reserve(o, size):
                return LEFT
            memcpy(o.out + o.size, o.out + starts[i], size)
            o.size += size
        elif _put_cell(t.run, o, cell, t.run.code + values, tokens + i, &p.facts):
            return LEFT
        if before == NULL:
            starts[i] = start
    if before == NULL:
        starts[p.count] = o.size
    return _put_absent(t, p, tokens, 0 if p.fills and tokens == t.after else absent)


cdef int _put_absent(Typing *t, const Pattern *p, const Token *tokens, int absent) noexcept nogil:
    """Put out that no value is kept as text, and the names of the columns that a row does not have."""
    cdef Run *o = t.payloads
    cdef Py_ssize_t size = o.size
    cdef int i
    t.order.lacks = absent > 0
    if _put(o, 0):
        return LEFT
    if absent:
        if _put_long(o, absent):
            return LEFT
        for i in range(p.count):
            if p.cells[i].op != OP_GONE and tokens[i].row != t.row:
                if _put_long(o, p.cells[i].size) or _put_bytes(o, p.facts.texts + p.cells[i].name, p.cells[i].size):
                    return LEFT
        # The lengths before names may take more bytes than the exact way counts.
        t.most_absent = max(t.most_absent, o.size - size)
    return _put(o, 0)


cdef int _put_key(Typing *t, const Pattern *p, int values, const Token *tokens) noexcept nogil:
    """Put out the key of a row. One with null in it is left: a current state refuses it."""
    cdef const Cell *cell
    cdef Py_ssize_t start
    cdef int i
    for i in range(p.key_count):
        cell, start = p.cells + p.key[i], t.keys.size
        if tokens[p.key[i]].row != t.row:
            return LEFT
        if _put_cell(t.run, t.keys, cell, t.run.code + values, tokens + p.key[i], &p.facts):
            return LEFT
        if t.keys.out[start] == <uint8_t>cell.null:
            return LEFT
    return _put(t.keys, 0)


cdef bint _is_equal(const Token *one, const Token *other) noexcept nogil:
    return one.end - one.start == other.end - other.start and memcmp(one.start, other.start, one.end - one.start) == 0


cdef int _keys_agree(Typing *t, const Pattern *p, const Token *tokens) noexcept nogil:
    """Stop unless the key beside a row has the row's own values."""
    cdef int i, cell
    cdef const uint8_t *name
    cdef Py_ssize_t size
    for i in range(t.key_count):
        name = t.key_names[i]
        size = t.key_sizes[i]
        # The length before the name has as many bytes as its value needs.
        while size > 0 and name[0] >= 0x80:
            name += 1
            size -= 1
        cell = _cell_of(p, i, name + 1, size - 1)
        if cell < 0 or tokens[cell].row != t.row or not _is_equal(tokens + cell, &t.key_values[i]):
            return LEFT
    return OK


cdef int _put_times(Run *o, bint known, int64_t micros) noexcept nogil:
    """Put out an instant in milliseconds and in microseconds."""
    cdef int64_t millis
    if not known:
        return _put(o, 0) or _put(o, 0)
    millis = micros // 1000
    if micros % 1000 < 0:
        millis -= 1
    return _put(o, 2) or _put_long(o, millis) or _put(o, 2) or _put_long(o, micros)


cdef int _pass_place(Run *r, const uint8_t **at, const uint8_t *end, bint is_text) noexcept nogil:
    """Pass one field of a place by, which is null or has a value."""
    cdef int64_t value
    r.at, r.end = at[0], end
    if r.at >= end or (r.at[0] != 0 and r.at[0] != 2):
        return LEFT
    r.at += 1
    if at[0][0] and (_skip_text(r) if is_text else _read_long(r, &value)):
        return LEFT
    at[0] = r.at
    return OK


cdef int _put_place(Typing *t, const Pattern *p) noexcept nogil:
    """Put out where a message arrived: topic, partition, offset, file and line, else what its pattern says."""
    cdef const uint8_t *told = t.place
    cdef const uint8_t *own = p.place
    cdef const uint8_t *first
    cdef const uint8_t *own_first
    cdef int i
    for i in range(5):
        first, own_first = told, own
        if _pass_place(t.run, &told, t.place + t.place_size, i == 0 or i == 3):
            return LEFT
        if _pass_place(t.run, &own, p.place + p.place_size, i == 0 or i == 3):
            return LEFT
        if first[0] == 0:
            if _put_bytes(t.payloads, own_first, own - own_first):
                return LEFT
        elif _put_bytes(t.payloads, first, told - first):
            return LEFT
    return OK


cdef int _put_source(Typing *t, const Pattern *p, uint8_t op, int64_t row) noexcept nogil:
    """Put out where and when a change was made, what it did, and when its message was."""
    cdef Run *o = t.payloads
    cdef const Slot *transaction = t.slots + TRANSACTION
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef int64_t number
    cdef int i
    if _put_bytes(o, p.head, p.head_size) or _put_times(o, t.has_event, t.event):
        return LEFT
    if t.number_count < 0:
        if _put(o, 0):
            return LEFT
    else:
        if _put(o, 2) or _put_long(o, t.number_count):
            return LEFT
        for i in range(t.number_count):
            if _put_long(o, t.numbers[i]):
                return LEFT
        if t.number_count and _put(o, 0):
            return LEFT
    if transaction.start == NULL:
        transaction = t.slots + TRANSACTION_ELSE
    if transaction.start == NULL:
        if _put(o, 0):
            return LEFT
    elif t.run.code[transaction.node].kind == LONG:
        if _long_at(t.run, transaction, &number) or _put(o, 2) or _put_count(o, number):
            return LEFT
    elif _text_at(t.run, transaction, &start, &end):
        return LEFT
    elif start == end and p.bare_transaction:
        if _put(o, 0):
            return LEFT
    elif _put(o, 2) or _put_long(o, end - start) or _put_bytes(o, start, end - start):
        return LEFT
    if _put_place(t, p) or _put(o, 2) or _put_long(o, row):
        return LEFT
    return _put(o, 2) or _put(o, op) or _put_times(o, t.has_system, t.system)


cdef void _keep_key(Typing *t, const Pattern *p) noexcept nogil:
    """Give the row before an update those columns of the key that it does not state: they did not change."""
    cdef int i
    for i in range(p.key_count):
        if t.before[p.key[i]].row != t.row and t.after[p.key[i]].row == t.row:
            t.before[p.key[i]] = t.after[p.key[i]]


cdef int _compare_keys(const Typing *t, const Pattern *p, bint *is_same) noexcept nogil:
    """Say whether the rows before and after an update have the same values in the key; stop if one lacks some."""
    cdef int i
    is_same[0] = True
    for i in range(p.same_count):
        if t.before[p.same[i]].row != t.row or t.after[p.same[i]].row != t.row:
            return LEFT
        if not _is_equal(t.before + p.same[i], t.after + p.same[i]):
            is_same[0] = False
    return OK


cdef int _make_row(
    Typing *t, Pattern *p, int32_t message, int values, int64_t number, bint has_before, bint has_after
) noexcept nogil:
    """Append a row whose tokens were taken, or two if an update moves it to another key."""
    cdef bint is_same
    if t.number_count > 0 and t.numbers[0] > p.latest:
        return LEFT
    if has_before and has_after:
        _keep_key(t, p)
        if _compare_keys(t, p, &is_same):
            return LEFT
        if not is_same:
            return _make_moved(t, p, message, values, number)
    return _put_row(t, p, values, number, has_before, has_after, p.op) or _note_row(t, p, message, WHOLE_CHANGE)


cdef int _make_moved(Typing *t, Pattern *p, int32_t message, int values, int64_t number) noexcept nogil:
    """Append the delete of a key and the insert of another; stop if values are the same but for how they are spelled.

    What the row before the update alone has belongs to the insert, too, if it is certain, so that row is to be whole.
    """
    cdef Py_ssize_t start = t.keys.size, middle
    cdef int i
    if not (t.order.is_asked and p.splits):
        return LEFT
    t.order.moves = True
    if not t.order.is_moving:
        return LEFT
    for i in range(p.count):
        if p.cells[i].op != OP_GONE and t.after[i].row != t.row:
            return LEFT
    if _put_row(t, p, values, number, True, False, 100) or _note_row(t, p, message, MOVED_AWAY):
        return LEFT
    middle = t.keys.size
    if _put_row(t, p, values, number, False, True, 99) or _note_row(t, p, message, MOVED_HERE):
        return LEFT
    i = t.keys.size - middle == middle - start and memcmp(t.keys.out + start, t.keys.out + middle, middle - start) == 0
    return LEFT if i else OK


cdef int _put_row(
    Typing *t, Pattern *p, int values, int64_t number, bint has_before, bint has_after, uint8_t op
) noexcept nogil:
    """Put out the key and the envelope of a row, whose tokens were taken."""
    cdef const Token *tokens = t.before if has_before else t.after
    if p.key_count >= 0 and _put_key(t, p, values, tokens):
        return LEFT
    if _put(t.payloads, 2 if has_before else 0):
        return LEFT
    if has_before and _put_image(t, p, values, t.before, NULL, t.starts):
        return LEFT
    if _put(t.payloads, 2 if has_after else 0):
        return LEFT
    if has_after and _put_image(t, p, values, t.after, t.before if has_before else NULL, t.starts):
        return LEFT
    return _put_source(t, p, op, number)


# All rows of a message.

cdef inline bint _lacks_nulls(const Typing *t, const Pattern *p) noexcept nogil:
    """Return whether nulls in the rows of a pattern say nothing of their columns, as in deletes of some formats."""
    return t.run.code[t.run.root].a[6] & LACKS_NULLS and p.op == 100


cdef int _type_message(Typing *t, Pattern *p, int32_t message) noexcept nogil:
    """Append the rows of a message whose parts were gathered."""
    if t.is_change:
        return _type_change(t, p, message)
    t.lacks_nulls = _lacks_nulls(t, p)
    if _take_times(t) or _take_numbers(t, p.position) or _reserve_tokens(t, p.count):
        return LEFT
    if t.order.is_asked and _begin_order(t, p):
        return LEFT
    if t.slots[ROWS].start != NULL:
        return _type_rows(t, p, message)
    return _type_row(t, p, message)


cdef int _type_row(Typing *t, Pattern *p, int32_t message) noexcept nogil:
    """Append the only row of a message, or of a line."""
    cdef const Slot *before = t.slots + p.before
    cdef const Slot *after = t.slots + p.after
    cdef bint has_before = p.before != FIXED, has_after = p.after != FIXED
    cdef int values
    if (has_before and before.start == NULL) or (has_after and after.start == NULL) or not (has_before or has_after):
        return LEFT
    if _is_beside(t, p, BEFORE) or _is_beside(t, p, AFTER):
        # A second row before the change may contradict the first, and the operation may have no row after it.
        return LEFT
    values = t.run.code[(before if has_before else after).node].a[0]
    t.row += 1
    if has_before and p.before == OLD:
        # The changed columns as they were; the others had the values that they have now.
        if not has_after or _take_image(t, p, after.start, after.end, values, t.after):
            return LEFT
        memcpy(t.before, t.after, p.count * sizeof(Token))
        if _take_image(t, p, before.start, before.end, values, t.before):
            return LEFT
    elif has_before and _take_image(t, p, before.start, before.end, values, t.before):
        return LEFT
    if has_after and p.before != OLD:
        if has_before and p.after == ROW:
            memcpy(t.after, t.before, p.count * sizeof(Token))
        if _take_image(t, p, after.start, after.end, values, t.after):
            return LEFT
    if t.key_count and _keys_agree(t, p, t.after if has_after else t.before):
        return LEFT
    return _make_row(t, p, message, values, t.line_row, has_before, has_after)


cdef bint _is_beside(Typing *t, const Pattern *p, int part) noexcept nogil:
    """Return whether a row is there that the changes of the pattern do not have; an empty one is none."""
    cdef const Slot *slot = t.slots + part
    if slot.start == NULL or p.before == part or p.after == part:
        return False
    return t.run.code[slot.node].kind != MAP or slot.end - slot.start != 1


cdef int _type_rows(Typing *t, Pattern *p, int32_t message) noexcept nogil:
    """Append all rows of a message; beside each of an update may stand the values that its changed columns had."""
    cdef Run *r = t.run
    cdef const Slot *rows = t.slots + ROWS
    cdef const Slot *olds = t.slots + OLD
    cdef const Instruction *item = r.code + r.code[rows.node].a[0]
    cdef int values = r.code[item.a[0]].a[0]
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef const uint8_t *old = NULL
    cdef int64_t count, left = 0, i
    cdef bint has_old
    if olds.start != NULL:
        r.at, r.end = olds.start, olds.end
        if _read_long(r, &left):
            return LEFT
        old = r.at
    r.at, r.end = rows.start, rows.end
    if _read_long(r, &count) or count < 1 or count > MOST_ROWS or (left and left != count):
        return LEFT
    if count > 1 and count > (4 << 20) // (p.weight + t.loose + 1):
        return LEFT
    at = r.at
    for i in range(count):
        t.row += 1
        r.at, r.end = at, rows.end
        if r.at >= r.end or r.at[0] != item.a[1] << 1 or _skip(r, r.code[rows.node].a[0]):
            return LEFT
        end = r.at
        if _take_image(t, p, at + 1, end, values, t.before if p.before == ROWS else t.after):
            return LEFT
        at = end
        has_old = False
        if i < left and _take_old(t, p, &old, values, &has_old):
            return LEFT
        if _make_row(t, p, message, values, t.line_row + i, p.before == ROWS or has_old, p.before != ROWS):
            return LEFT
    return OK


cdef int _take_old(Typing *t, Pattern *p, const uint8_t **at, int values, bint *has_old) noexcept nogil:
    """Take the values that the changed columns of a row had; the others had those of the row."""
    cdef Run *r = t.run
    cdef const Slot *olds = t.slots + OLD
    cdef int item = r.code[olds.node].a[0]
    cdef const uint8_t *start = at[0]
    r.at, r.end = start, olds.end
    if _skip(r, item):
        return LEFT
    at[0] = r.at
    if start[0] != r.code[item].a[1] << 1:
        return OK
    if p.op != 117 or p.before == ROWS:
        return LEFT
    if at[0] - start == 2:  # an empty one says that nothing is known of the row before
        return OK
    memcpy(t.before, t.after, p.count * sizeof(Token))
    has_old[0] = True
    return _take_image(t, p, start + 1, at[0], values, t.before)


cdef int _note_row(Typing *t, const Pattern *p, int32_t message, int part) noexcept nogil:
    cdef MadeRow *made
    if t.order.is_asked and _put_order(t, part):
        return LEFT
    if t.made_count == t.made_room:
        made = <MadeRow *>realloc(t.made, (2 * t.made_room + 16) * sizeof(MadeRow))
        if made == NULL:
            return LEFT
        t.made = made
        t.made_room = 2 * t.made_room + 16
    made = t.made + t.made_count
    made.message, made.pattern, made.is_keyed = message, p.number, p.key_count >= 0
    made.key, made.payload, made.order = t.keys.size, t.payloads.size, t.order.made.size
    made.lacks, made.part = t.order.lacks and p.after != FIXED and part != MOVED_AWAY, part
    t.made_count += 1
    return OK


cdef int _reserve_tokens(Typing *t, int count) noexcept nogil:
    cdef Py_ssize_t room = count + 1
    cdef void *kept
    if t.room >= room:
        return OK
    kept = realloc(t.before, room * sizeof(Token))
    if kept == NULL:
        return LEFT
    t.before = <Token *>kept
    kept = realloc(t.after, room * sizeof(Token))
    if kept == NULL:
        return LEFT
    t.after = <Token *>kept
    kept = realloc(t.starts, room * sizeof(Py_ssize_t))
    if kept == NULL:
        return LEFT
    t.starts = <Py_ssize_t *>kept
    # Rows are counted from 1 on, so that no token seems to be of one.
    memset(t.before, 0, room * sizeof(Token))
    memset(t.after, 0, room * sizeof(Token))
    t.room = room
    return OK


# Changes as typed rows: payloads of `change.avsc`, in which the parts of a row stand as they would in a message's
# payload.

cdef enum:
    LEVEL_OF_VALUES = 3  # in a change, in a row
    MOST_TEXTS = 64  # entries of a map of texts, which are compared with each other
    MOST_ABSENT = 8 << 20  # as in table/writing/table_writer.py


cdef int _check_column(Run *r, const Instruction *column) noexcept nogil:
    """Pass the value of a column by."""
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef Py_ssize_t size
    cdef int index
    cdef int64_t whole
    cdef double real
    if _read_index(r, &index):
        return LEFT
    if index == column.a[4]:
        return _read_text(r, &start, &size)
    if index == column.a[0]:
        return OK
    if index == column.a[2]:
        return _read_long(r, &whole)
    if index == column.a[3]:
        if r.end - r.at < 8:
            return LEFT
        memcpy(&real, r.at, 8)
        r.at += 8
        return LEFT if real - real != 0 else OK
    if index == column.a[1]:
        return _skip_boolean(r)
    if index == column.a[6]:
        return _check_json(r)
    if index != column.a[5] or _read_string(r, &start, &size) or size == 0:
        return LEFT
    end, r.end, r.at = r.end, r.at, start
    index = _scan_number(r, &start)
    start, r.end = r.end, end
    return OK if index and r.at == start else LEFT


cdef int _check_json(Run *r) noexcept nogil:
    """Pass the text of an object or array by if it is compact, as the exact way would spell it again."""
    cdef const uint8_t *start
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef Py_ssize_t size
    if _read_text(r, &start, &size) or size == 0 or (start[0] != 123 and start[0] != 91):
        return LEFT
    # What is put out is nothing but this text.
    at, end = r.at, r.end
    r.at, r.end, r.size = start, at, 0
    if _copy_json(r, LEVEL_OF_VALUES) or r.at != r.end or r.size != size or memcmp(r.out, start, size) != 0:
        return LEFT
    r.end = end
    return OK


cdef int _check_entries(Run *r, const Instruction *map) noexcept nogil:
    """Pass a map by. Names of columns are compared with those of their table, and told apart there."""
    cdef const uint8_t *names[MOST_TEXTS]
    cdef Py_ssize_t sizes[MOST_TEXTS]
    cdef const uint8_t *start
    cdef Py_ssize_t size
    cdef int64_t count, i, j
    cdef bint is_image = r.code[map.a[0]].kind == COLUMN
    if _read_count(r, &count) or not (is_image or count <= MOST_TEXTS):
        return LEFT
    for i in range(count):
        if is_image:
            if _skip_text(r) or _check_column(r, r.code + map.a[0]):
                return LEFT
            continue
        if _read_text(r, &start, &size) or _check(r, map.a[0]):
            return LEFT
        for j in range(i):
            if sizes[j] == size and memcmp(names[j], start, size) == 0:
                return LEFT
        names[i], sizes[i] = start, size
    return _read_end(r) if count else OK


cdef int _check_items(Run *r, const Instruction *array) noexcept nogil:
    """Pass an array by, none of whose items is null."""
    cdef int64_t count, i
    if _read_count(r, &count):
        return LEFT
    for i in range(count):
        if r.code[array.a[0]].kind == OPTIONAL and (r.at >= r.end or r.at[0] != r.code[array.a[0]].a[1] << 1):
            return LEFT
        if _check(r, array.a[0]):
            return LEFT
    return _read_end(r) if count else OK


cdef int _check(Run *r, int node) noexcept nogil:
    """Pass one value by if it is one that the exact way reads."""
    cdef const Instruction *type = r.code + node
    cdef const uint8_t *start
    cdef Py_ssize_t size
    cdef int64_t value
    cdef int index, i
    if type.kind == OPTIONAL:
        if _read_index(r, &index):
            return LEFT
        if index == type.a[2]:
            return OK
        if index != type.a[1]:
            return LEFT
        type = r.code + type.a[0]
    if type.kind == STRING:
        return _read_text(r, &start, &size)
    if type.kind == LONG:
        return _read_long(r, &value)
    if type.kind == INT:
        return _read_long(r, &value) or not -(<int64_t>1 << 31) <= value < <int64_t>1 << 31
    if type.kind == MAP:
        return _check_entries(r, type)
    if type.kind == ARRAY:
        return _check_items(r, type)
    if type.kind != RECORD:
        return LEFT
    for i in range(type.a[0], type.a[0] + type.a[1]):
        if r.members[i].missing == EXTRAS or _check(r, r.members[i].node):
            return LEFT
    return OK


cdef int _gather_change(Typing *t, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Note the parts of a change, and add everything else to the pattern.

    What belongs to the pattern is not checked: the change that it was learned from, which the exact way read, has the
    same bytes.
    """
    cdef Run *r = t.run
    cdef const Instruction *record = r.code + r.root
    cdef const Member *member
    cdef const uint8_t *at
    cdef int i
    # All arrays and maps together have at most one item to a byte.
    _begin(r, start, size)
    r.items_left = size
    for i in range(record.a[0], record.a[0] + record.a[1]):
        member = r.members + i
        at = r.at
        if member.missing == EXTRAS:
            if _read_end(r):
                return LEFT
        elif member.part == FIXED:
            if _skip(r, member.node) or _keep(t, at, r.at):
                return LEFT
        elif _gather_of_change(t, member):
            return LEFT
    return OK if r.at == r.end else LEFT


cdef int _gather_of_change(Typing *t, const Member *member) noexcept nogil:
    """Pass a member by that is a part of a row, or unused; whether it has a value belongs to the pattern."""
    cdef Run *r = t.run
    cdef const Instruction *type = r.code + member.node
    cdef Slot *slot = t.slots + member.part
    cdef const uint8_t *start
    cdef int index
    if type.kind != OPTIONAL or r.at >= r.end or _put(t.fixed, r.at[0]) or _read_index(r, &index):
        return LEFT
    if index == type.a[2]:
        return OK
    start = r.at
    if index != type.a[1] or _check(r, type.a[0]):
        return LEFT
    if member.part != UNUSED:
        slot.start, slot.end, slot.member, slot.node = start, r.at, member, type.a[0]
    return OK


cdef inline int _whole_at(Typing *t, int part, int64_t *value, bint *is_given) noexcept nogil:
    cdef const Slot *slot = t.slots + part
    is_given[0] = slot.start != NULL
    if not is_given[0]:
        return OK
    t.run.at, t.run.end = slot.start, slot.end
    return _read_long(t.run, value)


cdef int _take_change(Typing *t) noexcept nogil:
    """Take the times, the numbers and the place of a change, and which row of its message it is."""
    cdef Run *r = t.run
    cdef const Slot *position = t.slots + POSITION
    cdef const Slot *place = t.slots + PLACE
    cdef bint is_given
    cdef int64_t count, i
    t.number, t.count, t.number_count = 0, 1, -1
    if _whole_at(t, EVENT_TIME, &t.event, &t.has_event) or _whole_at(t, SYSTEM_TIME, &t.system, &t.has_system):
        return LEFT
    if _whole_at(t, ROW_NUMBER, &t.number, &is_given) or _whole_at(t, ROW_COUNT, &t.count, &is_given):
        return LEFT
    if position.start != NULL:
        r.at, r.end = position.start, position.end
        if _read_long(r, &count) or not 0 <= count <= MOST_NUMBERS:
            return LEFT
        for i in range(count):
            if _read_long(r, t.numbers + i):
                return LEFT
        t.number_count = <int>count
    # A place is encoded as it is in `source`.
    t.place = <const uint8_t *>NO_PLACE if place.start == NULL else place.start
    t.place_size = 5 if place.start == NULL else place.end - place.start
    return OK


cdef inline int _take_facts(Typing *t, int rule) noexcept nogil:
    """Take the times and numbers of a message or a change."""
    if t.is_change:
        return _take_change(t)
    return _take_times(t) or _take_numbers(t, rule)


cdef int _take_whole_image(Typing *t, Pattern *p, const Slot *image, Token *tokens) noexcept nogil:
    """Find the columns of a row; stop at a name that it has twice."""
    cdef Run *r = t.run
    cdef int64_t count
    cdef int i
    if image.start == NULL or _take_image(t, p, image.start, image.end, r.code[image.node].a[0], tokens):
        return LEFT
    r.at, r.end = image.start, image.end
    if _read_long(r, &count):
        return LEFT
    for i in range(p.count):
        count -= tokens[i].row == t.row
    return LEFT if count else OK


cdef bint _lacks_too_much(Typing *t, const Pattern *p, const Token *tokens) noexcept nogil:
    """Return whether the names of a row's absent columns are out of proportion, once for each row of the message."""
    cdef int64_t size = 0
    cdef int i
    if t.count <= 1:
        return False
    for i in range(p.count):
        if p.cells[i].op != OP_GONE and tokens[i].row != t.row:
            size += p.cells[i].size + 1
    return size > MOST_ABSENT // t.count


cdef int _type_change(Typing *t, Pattern *p, int32_t message) noexcept nogil:
    """Append the row of a change whose parts were gathered; stop at one that has no order."""
    cdef bint has_before = p.before != FIXED, has_after = p.after != FIXED, is_place
    cdef const Slot *image = t.slots + (p.before if has_before else p.after)
    if not (has_before or has_after) or _take_change(t) or _reserve_tokens(t, p.count):
        return LEFT
    if t.order.is_asked:
        if _begin_order(t, p):
            return LEFT
        t.order.row = t.number
    elif t.number_count < 0 and (_find_place(t, p, &is_place) or not is_place):
        return LEFT
    t.row += 1
    if has_before and (_take_whole_image(t, p, t.slots + p.before, t.before) or _lacks_too_much(t, p, t.before)):
        return LEFT
    if has_after and (_take_whole_image(t, p, t.slots + p.after, t.after) or _lacks_too_much(t, p, t.after)):
        return LEFT
    return _make_row(t, p, message, t.run.code[image.node].a[0], t.number, has_before, has_after)
