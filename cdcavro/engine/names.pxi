# Names: taken from a text, held against each other within an object, and those of maps kept for the next message.


cdef struct Name:
    uint64_t hash
    const uint8_t *start
    uint32_t size
    uint32_t object
    uint32_t run

cdef enum:
    KNOWN_CHUNK = 1024
    MOST_KNOWN = 65535
    FIRST_SLOTS = 256
    SPELLED = 1 << 16  # bytes of names in a block, of which there are at most 64
    LONGEST = 63  # bytes of a name that is kept, whose length is then one byte
    NOWHERE = -1  # the node of names with escapes, which are kept to be pointed to
    MOST_STRANGE = 10000  # names that found no room, before room is made
    MOST_PROBES = 64
    MOST_NAMES = 1 << 18  # of a message, in a table that is half full at the most

cdef struct KnownName:  # a name of a map's entries, or a member that a record does not name
    uint64_t stamp  # the object that had it last
    const uint8_t *label  # the name quoted and with its colon, and behind that the name with its length, as in Avro
    int32_t node  # of the map or record
    int32_t next  # the number of the name that came next the last time
    int16_t label_size
    int16_t size

cdef struct NameTable:  # numbered from 1
    KnownName *chunks[64]
    uint64_t *hashes[64]
    uint8_t *blocks[64]
    uint32_t *slots
    uint32_t slots_room
    int32_t count
    int block
    Py_ssize_t used  # of the last block
    bint is_full  # so that it stays for this message whether a name is kept
    int32_t strange


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


cdef void _forget_names(NameTable *names) noexcept nogil:
    cdef int i
    for i in range(64):
        free(names.chunks[i])
        free(names.hashes[i])
        free(names.blocks[i])
    free(names.slots)
    memset(names, 0, sizeof(NameTable))


cdef inline KnownName *_known_at(NameTable *names, int number) noexcept nogil:
    return names.chunks[<uint32_t>number // KNOWN_CHUNK] + <uint32_t>number % KNOWN_CHUNK


cdef inline uint64_t *_hash_at(NameTable *names, int number) noexcept nogil:
    return names.hashes[<uint32_t>number // KNOWN_CHUNK] + <uint32_t>number % KNOWN_CHUNK


cdef int _make_room(NameTable *names) noexcept nogil:
    """Make room for one more name, as long as there is any to be had."""
    cdef int chunk = (names.count + 1) // KNOWN_CHUNK
    if names.chunks[chunk] == NULL:
        names.chunks[chunk] = <KnownName *>malloc(KNOWN_CHUNK * sizeof(KnownName))
        free(names.hashes[chunk])
        names.hashes[chunk] = <uint64_t *>malloc(KNOWN_CHUNK * sizeof(uint64_t))
        if names.chunks[chunk] == NULL or names.hashes[chunk] == NULL:
            return LEFT
    if names.blocks[names.block] != NULL and SPELLED - names.used >= 7 * LONGEST + 8:
        return OK
    if names.blocks[names.block] != NULL:
        if names.block == 63:
            return LEFT
        names.block += 1
    names.used = 0
    names.blocks[names.block] = <uint8_t *>malloc(SPELLED + SLACK)
    return LEFT if names.blocks[names.block] == NULL else OK


cdef int _make_slots(NameTable *names) noexcept nogil:
    """Make room for twice as many names to be looked up."""
    cdef uint32_t room = names.slots_room * 2 if names.slots_room else FIRST_SLOTS
    cdef uint32_t *slots = <uint32_t *>calloc(room, sizeof(uint32_t))
    cdef uint64_t slot
    cdef int i
    if slots == NULL:
        return LEFT
    for i in range(1, names.count + 1):
        slot = _hash_at(names, i)[0] & (room - 1)
        while slots[slot]:
            slot = (slot + 1) & (room - 1)
        slots[slot] = i
    free(names.slots)
    names.slots = slots
    names.slots_room = room
    return OK


cdef int _know(Run *r, int node, uint64_t hash, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Keep a name that there is room for; return its number."""
    cdef NameTable *names = r.known
    cdef Py_ssize_t place = r.size, label
    cdef KnownName *known
    cdef uint8_t *spelled
    names.is_full = names.count == MOST_KNOWN or _make_room(names)
    if names.is_full or _put_quoted(r, start, start + size, start + size) or _put(r, 58):
        names.is_full = True
        return 0
    spelled = names.blocks[names.block] + names.used
    label = r.size - place
    r.size = place
    memcpy(spelled, r.out + place, label)
    spelled[label] = <uint8_t>(size << 1)
    memcpy(spelled + label + 1, start, size)
    names.used += label + size + 1
    names.count += 1
    known = _known_at(names, names.count)
    known.stamp, known.node, known.next = 0, node, 0
    known.label, known.label_size, known.size = spelled, <int16_t>label, <int16_t>size
    _hash_at(names, names.count)[0] = hash
    return names.count


cdef int _look_up(Run *r, int node, uint64_t hash, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Return the number of a name, 0 if it is not kept, which stays so within a message."""
    cdef NameTable *names = r.known
    cdef KnownName *known
    cdef uint64_t slot
    cdef int probes
    if size > LONGEST:
        return 0
    if names.count * 2 >= <int64_t>names.slots_room and not names.is_full:
        names.is_full = _make_slots(names) != OK
    if names.slots_room == 0:
        return 0
    hash += node * <uint64_t>0x9e3779b97f4a7c15
    hash ^= hash >> 17
    slot = hash & (names.slots_room - 1)
    for probes in range(MOST_PROBES):
        if names.slots[slot] == 0:
            if not names.is_full:
                names.slots[slot] = _know(r, node, hash, start, size)
            names.strange += names.is_full
            return names.slots[slot]
        if _hash_at(names, names.slots[slot])[0] == hash:
            known = _known_at(names, names.slots[slot])
            if known.node == node and known.size == size:
                if memcmp(known.label + known.label_size + 1, start, size) == 0:
                    return names.slots[slot]
        slot = (slot + 1) & (names.slots_room - 1)
    names.is_full = True
    names.strange += 1
    return 0


cdef inline KnownName *_guess(Run *r, int node, int number) noexcept nogil:
    """Return the name that came next in a map or record the last time, NULL without one."""
    cdef KnownName *known
    if not 0 < number <= r.known.count:
        return NULL
    known = _known_at(r.known, number)
    return known if known.node == node else NULL


cdef inline KnownName *_take_guessed(Run *r, int node, int number) noexcept nogil:
    """Pass a name and its colon by if they are those to be expected, and return the name; else NULL."""
    cdef KnownName *known = _guess(r, node, number)
    if known == NULL or not cdcavro_begins(r.at, r.end, known.label, known.label_size):
        return NULL
    r.at += known.label_size
    return known


cdef inline int _see(Run *r, KnownName *known, uint32_t object) noexcept nogil:
    """Mark a name as one that an object has; stop if it has it already."""
    if known.stamp == _stamp(r, object):
        return LEFT
    known.stamp = _stamp(r, object)
    return OK


cdef inline int _meet(
    Run *r, int node, uint32_t object, const uint8_t *start, Py_ssize_t size, int *number
) noexcept nogil:
    """Add a name to those of an object, and give its number, 0 if it is not kept; stop if the object has it already."""
    cdef uint64_t hash = cdcavro_hash(start, size)
    number[0] = _look_up(r, node, hash, start, size)
    if number[0]:
        return _see(r, _known_at(r.known, number[0]), object)
    return _add_hashed(r, object, hash, start, size)


cdef inline int _take_name(Run *r, const uint8_t **start, Py_ssize_t *size) noexcept nogil:
    """Pass a member's name and colon by."""
    if _take(r, 34):
        return LEFT
    start[0] = r.at
    r.at = cdcavro_plain(r.at, r.end, r.end)
    size[0] = r.at - start[0]
    if r.at >= r.end:
        return LEFT
    if r.at[0] != 34:
        return _take_escaped_name(r, start, size)
    r.at += 1
    return _take(r, 58)


cdef int _take_escaped_name(Run *r, const uint8_t **start, Py_ssize_t *size) noexcept nogil:
    """The same for a name with escapes, which is kept where it stays, as long as there is room."""
    cdef Py_ssize_t place = r.size
    cdef int number
    r.at = start[0]
    if _text(r):
        return LEFT
    size[0] = r.size - place
    # With so much room, the text does not move while it is kept.
    if size[0] > LONGEST or _reserve(r, 8 * LONGEST):
        return LEFT
    number = _look_up(r, NOWHERE, cdcavro_hash(r.out + place, size[0]), r.out + place, size[0])
    r.size = place
    if number == 0:
        return LEFT
    start[0] = _known_at(r.known, number).label + _known_at(r.known, number).label_size + 1
    return _take(r, 58)
