# Patterns: what messages of one kind have in common byte for byte, and with it where their rows go.


cdef int64_t LARGEST = 0x7FFFFFFFFFFFFFFF

cdef enum:  # Part: which part of a typed row a member is, as `PARTS` in `wire/attributes.py` has it
    FIXED, UNUSED, WITHIN, BEFORE, AFTER, ROW, ROWS, OLD, KEY, EVENT_TIME, EVENT_TIME_FINE, SYSTEM_TIME
    SYSTEM_TIME_FINE, TRANSACTION, TRANSACTION_ELSE, POSITION_1, POSITION_2, POSITION_3, POSITION_4, POSITION_5
    POSITION_6, POSITION_7, POSITION_8, PLACE, ROW_NUMBER, ROW_COUNT, POSITION, PARTS

cdef enum:  # Position: how the numbers of one are told, as `POSITIONS` in `wire/attributes.py` has it
    NO_POSITION, COUNTS, SEQUENCE, WHOLE_NUMBER, SEQUENCE_ID, BINLOG, LOG_SEQUENCE, SCN, REDO, NUMBERS, COMMIT
    FILE_OFFSET, TRAIL, TIME, LOG_PLACE

cdef enum:
    MOST_NUMBERS = 34
    MOST_KEYS = 64
    MOST_PATTERNS = 4096
    MOST_KEPT = 1 << 26  # bytes of all patterns
    MOST_ROWS = 100000  # of a message
    MOST_SORTED = 128  # entries of a map
    LARGE = 512  # bytes of an entry of a map that stands in a pattern by its number
    MOST_LARGE = 256
    MOST_LARGE_BYTES = 4 << 20
    BY_NUMBER = 255  # no entry begins with it: the length of its name is an even number

cdef struct Large:  # an entry that many messages have alike, as the fields of their schema
    uint8_t *start
    Py_ssize_t size

cdef struct Cell:
    int32_t name
    int32_t size
    int32_t op
    int32_t some
    int32_t null
    int32_t a
    int32_t b
    int32_t c

cdef struct Token:  # the value of a column in a payload, from the index of its branch on, and of which row it is
    const uint8_t *start
    const uint8_t *end
    uint64_t row

cdef struct Span:
    const uint8_t *start
    const uint8_t *end

cdef struct Slot:  # where a part stands in a payload, without the index of its branch
    const uint8_t *start
    const uint8_t *end
    const Member *member
    int node

cdef struct Facts:  # what cells refer to
    const int64_t *longs
    const int32_t *symbols
    const uint8_t *texts
    const int64_t *zone
    Py_ssize_t zones

cdef struct Pattern:
    uint64_t hash
    int32_t number
    const uint8_t *fixed
    Py_ssize_t fixed_size
    Facts facts
    const Cell *cells
    int count
    const int32_t *key  # the cells of the key; -1 as their count if the table has none
    int key_count
    const int32_t *same  # the cells of a key that an update of it would split
    int same_count
    const uint8_t *head  # the first fields of `source`
    Py_ssize_t head_size
    const uint8_t *place  # where its messages say themselves that they arrived
    Py_ssize_t place_size
    int position
    int order  # what orders its messages
    uint8_t phase
    bint is_batched  # without a time, their numbers are those of batches
    int before
    int after
    uint8_t op
    bint bare_transaction  # an empty transaction is none
    int64_t latest  # the greatest first number of its messages
    bint splits  # an update that moves a row to another key becomes a delete and an insert
    bint fills  # columns that the row after a change does not have are null
    Py_ssize_t weight
    int32_t *index  # of cells by name, an open table
    uint32_t index_room
    int32_t *follows  # which cell came behind which

cdef struct Typing


cdef int _keep(Typing *t, const uint8_t *start, const uint8_t *end) noexcept nogil:
    """Add bytes to those that belong to the pattern."""
    return _put_bytes(t.fixed, start, end - start)


cdef int _gather(Typing *t, int node, int part) noexcept nogil:
    """Pass a record by: note where the parts of rows stand, and add everything else to the pattern."""
    cdef Run *r = t.run
    cdef const Instruction *record = r.code + node
    cdef const Instruction *type
    cdef const Member *member
    cdef const uint8_t *start
    cdef const uint8_t *kept = r.at  # bytes from here on belong to the pattern, and are added together
    cdef int i, own
    for i in range(record.a[0], record.a[0] + record.a[1]):
        member = r.members + i
        start = r.at
        own = member.part
        if member.missing != EXTRAS:
            type = r.code + member.node
            if own == FIXED and type.kind == OPTIONAL and start < r.end and start[0] == type.a[2] << 1:
                r.at += 1
                continue
            if own == FIXED and part != FIXED and _is_image(r, member.node):
                own = part
            if own == FIXED and not _is_map(r, member.node):
                if _skip(r, member.node):
                    return LEFT
                continue
        if start > kept and _keep(t, kept, start):
            return LEFT
        if member.missing == EXTRAS:
            if _gather_extras(t):
                return LEFT
        elif own == FIXED:
            if _keep_map(t, member.node):
                return LEFT
        elif own == UNUSED:
            # Only whether it is there belongs to the pattern.
            if _skip(r, member.node) or _put(t.fixed, r.code[member.node].kind != OPTIONAL or start[0]):
                return LEFT
            t.loose += r.at - start
        elif _gather_part(t, member, own):
            return LEFT
        kept = r.at
    return _keep(t, kept, r.at) if r.at > kept else OK


cdef int _keep_large(Typing *t, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Add a large entry to the pattern by its number in this engine, or whole where all numbers are taken."""
    cdef Large *one = t.large + t.large_last
    cdef int i
    cdef uint8_t *text
    if t.large_last >= t.large_count or one.size != size or memcmp(one.start, start, size) != 0:
        for i in range(t.large_count):
            one = t.large + i
            if one.size == size and memcmp(one.start, start, size) == 0:
                break
        else:
            i = t.large_count
            if i == MOST_LARGE or t.large_bytes + size > MOST_LARGE_BYTES:
                return _keep(t, start, start + size)
            text = <uint8_t *>malloc(size)
            if text == NULL:
                return LEFT
            memcpy(text, start, size)
            t.large[i].start, t.large[i].size = text, size
            t.large_count += 1
            t.large_bytes += size
        t.large_last = i
    return _put(t.fixed, BY_NUMBER) or _put(t.fixed, <uint8_t>t.large_last)


cdef void _forget_large(Typing *t) noexcept:
    """Forget all large entries, and with them their numbers."""
    cdef int i
    for i in range(t.large_count):
        free(t.large[i].start)
    t.large_count = t.large_last = 0
    t.large_bytes = 0


cdef inline bint _is_map(Run *r, int node) noexcept nogil:
    return r.code[r.code[node].a[0] if r.code[node].kind == OPTIONAL else node].kind == MAP


cdef inline bint _is_smaller(const Span *one, const Span *other) noexcept nogil:
    cdef Py_ssize_t size = one.end - one.start, most = other.end - other.start
    cdef int sign = memcmp(one.start, other.start, size if size < most else most)
    return sign < 0 or (sign == 0 and size < most)


cdef int _keep_map(Typing *t, int node) noexcept nogil:
    """Add a map to the pattern, its entries in one order: TiCDC writes them in another one each time."""
    cdef Run *r = t.run
    cdef const uint8_t *start = r.at
    cdef const uint8_t *entries
    cdef Span spans[MOST_SORTED]
    cdef Span span
    cdef int64_t count, i, j
    cdef int index, map = node
    cdef bint is_large = False
    if r.code[node].kind == OPTIONAL:
        if _read_index(r, &index):
            return LEFT
        if index == r.code[node].a[2]:
            return _keep(t, start, r.at)
        map = r.code[node].a[0]
    entries = r.at
    if _read_long(r, &count):
        return LEFT
    if count == OF_HEAD and r.has_head:
        return _keep(t, start, entries) or _put_bytes(t.fixed, t.head, t.head_size)
    if not 0 <= count <= MOST_SORTED:
        r.at = start
        return _skip(r, node) or _keep(t, start, r.at)
    if _keep(t, start, r.at):
        return LEFT
    for i in range(count):
        span.start = r.at
        if _skip_text(r) or _skip(r, r.code[map].a[0]):
            return LEFT
        span.end = r.at
        is_large = is_large or (t.has_numbers and span.end - span.start >= LARGE)
        j = i
        while j > 0 and _is_smaller(&span, &spans[j - 1]):
            spans[j] = spans[j - 1]
            j -= 1
        spans[j] = span
    if _keep_large_entries(t, spans, count) if is_large else _keep_entries(t, spans, count):
        return LEFT
    return _read_end(r) if count else OK


cdef inline int _keep_entries(Typing *t, const Span *spans, int64_t count) noexcept nogil:
    cdef int64_t i
    for i in range(count):
        if _keep(t, spans[i].start, spans[i].end):
            return LEFT
    return OK


cdef int _keep_large_entries(Typing *t, const Span *spans, int64_t count) noexcept nogil:
    """Add entries of a map to the pattern, some of which are large."""
    cdef int64_t i
    cdef Py_ssize_t size
    for i in range(count):
        size = spans[i].end - spans[i].start
        if _keep(t, spans[i].start, spans[i].end) if size < LARGE else _keep_large(t, spans[i].start, size):
            return LEFT
    return OK


cdef inline bint _is_image(Run *r, int node) noexcept nogil:
    """Return whether a type is a map of column values."""
    if r.code[node].kind == OPTIONAL:
        node = r.code[node].a[0]
    return r.code[node].kind == MAP and r.code[r.code[node].a[0]].kind == COLUMN


cdef int _gather_extras(Typing *t) noexcept nogil:
    cdef Run *r = t.run
    cdef const uint8_t *start = r.at
    cdef int64_t count, i
    if _read_long(r, &count) or count < 0 or count > r.end - r.at:
        return LEFT
    for i in range(2 * count):
        if _skip_text(r):
            return LEFT
    if count and _read_end(r):
        return LEFT
    return _keep(t, start, r.at)


cdef int _gather_part(Typing *t, const Member *member, int part) noexcept nogil:
    """Pass a member by that is a part of a row, or has parts within; whether it has a value belongs to the pattern."""
    cdef Run *r = t.run
    cdef int node = member.node, index
    cdef Slot *slot
    if r.code[node].kind == OPTIONAL or r.code[node].kind == VARIANT:
        if r.at >= r.end or _put(t.fixed, r.at[0]):
            return LEFT
        if r.code[node].kind == OPTIONAL:
            if _read_index(r, &index):
                return LEFT
            if index == r.code[node].a[2]:
                return OK
            node = r.code[node].a[0]
        elif r.at[0] == r.code[node].a[0] << 1:
            r.at += 1
            return OK
    if r.code[node].kind == RECORD:
        return _gather(t, node, FIXED if part == WITHIN else part)
    slot = t.slots + part
    if slot.start != NULL or part == WITHIN:
        return LEFT
    slot.start = r.at
    if part == KEY:
        if _gather_key(t, r.code + node):
            return LEFT
    elif _skip(r, node):
        return LEFT
    slot.end = r.at
    slot.member = member
    slot.node = node
    return _keep_kind(t, part, slot)


cdef int _keep_kind(Typing *t, int part, const Slot *slot) noexcept nogil:
    """Add to the pattern what kind of value a part has, where values of several kinds mean different rows."""
    cdef int kind = t.run.code[slot.node].kind
    cdef Py_ssize_t size = slot.end - slot.start
    if part == TRANSACTION:
        t.loose += size
        return OK if kind == LONG else _put(t.fixed, size == 1)  # an empty one may be none
    if part == OLD and kind == MAP:
        return _put(t.fixed, size == 1)  # an empty one says that nothing is known of the row before
    if part == POSITION_1 and kind == STRING:
        # A number of -1 is that of a full load.
        return _put(t.fixed, size == 3 and slot.start[1] == 45 and slot.start[2] == 49)
    return OK


cdef int _gather_key(Typing *t, const Instruction *map) noexcept nogil:
    """Note the values of a key; its names belong to the pattern."""
    cdef Run *r = t.run
    cdef const uint8_t *start
    cdef int64_t count, i
    if map.kind != MAP or _read_long(r, &count) or not 0 <= count <= MOST_KEYS:
        return LEFT
    t.key_count = <int>count
    for i in range(count):
        start = r.at
        if _skip_text(r) or _keep(t, start, r.at):
            return LEFT
        t.key_names[i] = start
        t.key_sizes[i] = r.at - start
        t.key_values[i].start = r.at
        if _skip(r, map.a[0]):
            return LEFT
        t.key_values[i].end = r.at
    if count and _read_end(r):
        return LEFT
    return OK


cdef int _gather_message(Typing *t, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Encode a message, and note its parts and its pattern; a change is a payload already."""
    cdef Run *r = t.run
    r.size = 0
    memset(t.slots, 0, PARTS * sizeof(Slot))
    t.fixed.size = 0
    t.key_count = 0
    t.loose = 0
    if r.root < 0:
        return LEFT
    if t.is_change:
        return _gather_change(t, start, size)
    if t.is_read:
        r.at, r.end = start, start + size
    elif _write_message(r, r.root, start, size):
        return LEFT
    else:
        r.at, r.end = r.out, r.out + r.size
    # The engine's own payload is no bomb.
    r.items_left = LARGEST
    return LEFT if _gather(t, r.root, FIXED) or r.at != r.end else OK


cdef int _keep_head(Typing *t, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Make the pattern what the schema in a head adds to one; stop at a head that has no schema, or more than that."""
    cdef Run *r = t.run
    cdef int i, node
    if r.root < 0 or size < 21 or not cdcavro_is_utf8(start, start + size):
        return LEFT
    if memcmp(start, b'{"schema":', 10) != 0 or memcmp(start + size - 11, b',"payload":', 11) != 0:
        return LEFT
    i = _find_member(r, r.code + r.root, <const uint8_t *>b"schema", 6)
    if i < 0 or not _is_map(r, r.members[r.code[r.root].a[0] + i].node):
        return LEFT
    node = r.members[r.code[r.root].a[0] + i].node
    node = r.code[node].a[0] if r.code[node].kind == OPTIONAL else node
    r.size = t.fixed.size = 0
    _begin(r, start + 10, size - 21)
    # A schema stands at most in the value of a Kafka record.
    if _write(r, node, 3) or r.at != r.end or r.noted:
        return LEFT
    r.items_left = LARGEST
    r.at, r.end = r.out, r.out + r.size
    return LEFT if _keep_map(t, node) or r.at != r.end else OK


# Patterns, kept and found by what their messages have in common.

cdef void _fill(Pattern *p, tuple parts, program):
    """Point a pattern at its parts, which are kept as long as it is."""
    cdef bytes fixed = parts[0], cells = parts[1], longs = parts[2], symbols = parts[3], texts = parts[4]
    cdef bytes key = parts[5], same = parts[6], head = parts[7], place = parts[8]
    p.fixed, p.fixed_size = <const uint8_t *>PyBytes_AS_STRING(fixed), PyBytes_GET_SIZE(fixed)
    p.hash = cdcavro_hash(p.fixed, p.fixed_size)
    p.cells, p.count = <const Cell *>PyBytes_AS_STRING(cells), <int>(PyBytes_GET_SIZE(cells) // sizeof(Cell))
    p.facts.longs = <const int64_t *>PyBytes_AS_STRING(longs)
    p.facts.symbols = <const int32_t *>PyBytes_AS_STRING(symbols)
    p.facts.texts = <const uint8_t *>PyBytes_AS_STRING(texts)
    p.key = <const int32_t *>PyBytes_AS_STRING(key)
    p.key_count = <int>(PyBytes_GET_SIZE(key) // 4) if program.is_keyed else -1
    p.same, p.same_count = <const int32_t *>PyBytes_AS_STRING(same), <int>(PyBytes_GET_SIZE(same) // 4)
    p.head, p.head_size = <const uint8_t *>PyBytes_AS_STRING(head), PyBytes_GET_SIZE(head)
    p.place, p.place_size = <const uint8_t *>PyBytes_AS_STRING(place), PyBytes_GET_SIZE(place)
    p.position, p.before, p.after = program.position, program.before, program.after
    p.order, p.phase, p.is_batched = program.order, program.phase, program.is_batched
    p.op, p.bare_transaction, p.weight = program.operation, program.is_empty_none, program.weight
    p.fills, p.latest = program.fills_absent, program.latest
    p.splits = program.is_split and p.op == 117 and p.key_count > 0 and key == same
    p.index_room = 8
    while p.index_room < <uint32_t>(2 * p.count + 1):
        p.index_room *= 2


cdef int _index_cells(Pattern *p) noexcept nogil:
    """Make the index of cells by the names of their columns; if there is no room for it, the pattern goes."""
    cdef int i
    cdef uint64_t slot
    p.index = <int32_t *>malloc(p.index_room * sizeof(int32_t))
    p.follows = <int32_t *>malloc((p.count + 1) * sizeof(int32_t))
    if p.index == NULL or p.follows == NULL:
        free(p.index)
        free(p.follows)
        free(p)
        return LEFT
    memset(p.index, 255, p.index_room * sizeof(int32_t))
    for i in range(p.count + 1):
        p.follows[i] = i
    for i in range(p.count):
        if p.cells[i].op != OP_GONE:
            slot = cdcavro_hash(p.facts.texts + p.cells[i].name, p.cells[i].size)
            while p.index[slot & (p.index_room - 1)] >= 0:
                slot += 1
            p.index[slot & (p.index_room - 1)] = i
    return OK


cdef void _enter(Pattern **patterns, Py_ssize_t room, Pattern *p) noexcept nogil:
    cdef uint64_t slot = p.hash & (room - 1)
    while patterns[slot] != NULL:
        slot = (slot + 1) & (room - 1)
    patterns[slot] = p


cdef Pattern *_find(Pattern **patterns, Py_ssize_t room, const uint8_t *fixed, Py_ssize_t size) noexcept nogil:
    cdef uint64_t hash = cdcavro_hash(fixed, size)
    cdef uint64_t slot = hash & (room - 1)
    cdef Pattern *p
    while True:
        p = patterns[slot]
        if p == NULL:
            return NULL
        if p.hash == hash and p.fixed_size == size and memcmp(p.fixed, fixed, size) == 0:
            return p
        slot = (slot + 1) & (room - 1)
