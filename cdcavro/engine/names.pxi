# Names: taken from a text, held against each other within an object, and those of maps kept for the next message.

cdef int _grow_names(Run *r) noexcept nogil:
    cdef uint32_t room = r.names_room * 2, i
    cdef uint64_t slot
    cdef Name *names
    if room > MOST_NAMES:
        return LEFT
    names = <Name *>calloc(room, sizeof(Name))
    if names == NULL:
        return LEFT
    for i in range(r.names_room):
        if r.names[i].run == r.run:
            slot = r.names[i].hash & (room - 1)
            while names[slot].run == r.run:
                slot = (slot + 1) & (room - 1)
            names[slot] = r.names[i]
    free(r.names)
    r.names = names
    r.names_room = room
    return OK


cdef inline int _add_name(Run *r, uint32_t object, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Add a name to those of an object; stop if it has the name already."""
    return _add_hashed(r, object, cdcavro_hash(start, size), start, size)


cdef inline int _add_hashed(
    Run *r, uint32_t object, uint64_t hash, const uint8_t *start, Py_ssize_t size
) noexcept nogil:
    cdef uint64_t slot
    cdef int probes = 0
    cdef Name *name
    if r.named * 2 >= r.names_room and _grow_names(r):
        return LEFT
    hash += object * <uint64_t>0x9e3779b97f4a7c15
    hash ^= hash >> 17
    slot = hash & (r.names_room - 1)
    while True:
        name = &r.names[slot]
        if name.run != r.run:
            break
        if name.hash == hash and name.object == object and name.size == <uint32_t>size:
            if memcmp(name.start, start, size) == 0:
                return LEFT
        probes += 1
        if probes > MOST_PROBES:
            return LEFT
        slot = (slot + 1) & (r.names_room - 1)
    name.hash, name.start, name.size, name.object, name.run = hash, start, <uint32_t>size, object, r.run
    r.named += 1
    return OK


cdef inline uint64_t _stamp(Run *r, uint32_t object) noexcept nogil:
    return <uint64_t>r.run << 32 | object


cdef void _forget_names(KnownNames *names) noexcept nogil:
    memset(names.known, 0, sizeof(names.known))
    memset(names.slots, 0, sizeof(names.slots))
    names.count = names.spelled_size = names.strange = 0


cdef int _know(Run *r, int node, uint64_t hash, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Keep a name of the entries of a map that has none like it; return its number, 0 without room."""
    cdef KnownNames *names = r.known
    cdef Known *known
    cdef Py_ssize_t place = r.size, label
    cdef uint8_t *spelled = names.spelled + names.spelled_size
    if names.count == MOST_KNOWN or size > LONGEST or 7 * LONGEST + 8 > SPELLED - names.spelled_size:
        names.strange += 1
        return 0
    if _put_quoted(r, start, start + size, start + size) or _put(r, 58):
        names.count = MOST_KNOWN
        return 0
    label = r.size - place
    r.size = place
    memcpy(spelled, r.out + place, label)
    spelled[label] = <uint8_t>(size << 1)
    memcpy(spelled + label + 1, start, size)
    names.count += 1
    known = names.known + names.count
    known.hash, known.stamp, known.node, known.next = hash, 0, node + 1, 0
    known.label, known.label_size, known.size = names.spelled_size, <int32_t>label, <int32_t>size
    names.spelled_size += <int32_t>(label + size + 1)
    return names.count


cdef int _look_up(Run *r, int node, uint64_t hash, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Return the number of a name of the entries of a map, 0 if it is not kept, which stays so within a message."""
    cdef KnownNames *names = r.known
    cdef Known *known
    cdef uint64_t slot
    cdef int probes
    hash += node * <uint64_t>0x9e3779b97f4a7c15
    hash ^= hash >> 17
    slot = hash & (KNOWN_SLOTS - 1)
    for probes in range(MOST_PROBES):
        if names.slots[slot] == 0:
            names.slots[slot] = <uint16_t>_know(r, node, hash, start, size)
            return names.slots[slot]
        known = names.known + names.slots[slot]
        if known.hash == hash and known.node == node + 1 and known.size == size:
            if memcmp(names.spelled + known.label + known.label_size + 1, start, size) == 0:
                return names.slots[slot]
        slot = (slot + 1) & (KNOWN_SLOTS - 1)
    return 0


cdef inline Known *_guess(Run *r, int node, int number) noexcept nogil:
    """Return the name that came next in a map the last time, NULL without one."""
    cdef Known *known = r.known.known + number
    return known if number > 0 and known.node == node + 1 else NULL


cdef inline Known *_take_guessed(Run *r, int node, int number) noexcept nogil:
    """Pass a name and its colon by if they are those to be expected in a map, and return the name; else NULL."""
    cdef Known *known = _guess(r, node, number)
    if known == NULL or not cdcavro_begins(r.at, r.end, r.known.spelled + known.label, known.label_size):
        return NULL
    r.at += known.label_size
    return known


cdef inline int _see(Run *r, Known *known, uint32_t object) noexcept nogil:
    """Mark a name as one that an object has; stop if it has it already."""
    if known.stamp == _stamp(r, object):
        return LEFT
    known.stamp = _stamp(r, object)
    return OK


cdef inline int _meet(
    Run *r, int node, uint32_t object, const uint8_t *start, Py_ssize_t size, int *number
) noexcept nogil:
    """Add a name to those of an object, and give its number if it is kept, 0 if not; stop if the object has it already."""
    cdef uint64_t hash = cdcavro_hash(start, size)
    number[0] = _look_up(r, node, hash, start, size)
    if number[0]:
        return _see(r, r.known.known + number[0], object)
    return _add_hashed(r, object, hash, start, size)


cdef inline int _take_name(Run *r, const uint8_t **start, Py_ssize_t *size) noexcept nogil:
    """Pass a member's name and colon by; stop at an escape."""
    if _take(r, 34):
        return LEFT
    start[0] = r.at
    r.at = cdcavro_plain(r.at, r.end, r.end)
    size[0] = r.at - start[0]
    # White space before the closing quote would belong to the name, where most of it is not allowed.
    if r.at >= r.end or r.at[0] != 34:
        return LEFT
    r.at += 1
    return _take(r, 58)
