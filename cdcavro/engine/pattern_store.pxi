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
        if p.cells[i].op != GONE:
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
