# The lanes whose time a clock told, and their time since; `change/clock.py` says what that is.

cdef int _name_lane(Ordering *o) noexcept nogil:
    """Put out what a message's lane is called."""
    o.name.size = 0
    if _put_ordered_text(o.name, o.place[TOPIC].start, o.place[TOPIC].value) or _put_integer(o.name, o.place[PARTITION].value):
        return LEFT
    return _put_ordered_text(o.name, o.file.out, o.file.size)


cdef Lane *_slot_of_lane(Ordering *o, uint64_t hash) noexcept nogil:
    """Return a lane by its name, or the slot that is free for it."""
    cdef Lane *lane
    cdef uint64_t slot = hash
    while True:
        slot &= LANE_SLOTS - 1
        lane = o.lanes + slot
        if lane.stamp != o.stamp:
            return lane
        if lane.hash == hash and lane.size == o.name.size and memcmp(o.names.out + lane.name, o.name.out, lane.size) == 0:
            return lane
        slot += 1


cdef int _compare_numbers(const int64_t *one, int count, const int64_t *other, int others) noexcept nogil:
    """Return which of two lists of numbers is the greater: 1, 0 or -1."""
    cdef int i
    for i in range(count if count < others else others):
        if one[i] != other[i]:
            return 1 if one[i] > other[i] else -1
    return (count > others) - (count < others)


cdef int _put_time(Typing *t) noexcept nogil:
    """Put out the time of a message in its lane, the greatest so far there; stop at a place that is behind."""
    cdef Ordering *o = &t.order
    cdef Lane *lane
    cdef int count = t.number_count if t.number_count > 0 else 0
    cdef int64_t offset = o.place[OFFSET].value, line = o.place[LINE].value
    if _name_lane(o):
        return LEFT
    lane = _slot_of_lane(o, cdcavro_hash(o.name.out, o.name.size))
    if lane.stamp != o.stamp:
        o.is_unknown = True
        return LEFT
    if lane.is_left:
        return LEFT
    o.is_later, o.is_again = not lane.is_known, False
    if lane.is_known:
        if offset < lane.offset or (offset == lane.offset and line < lane.line):
            return LEFT
        o.is_again = offset == lane.offset and line == lane.line
        if not o.is_again:
            o.is_later = o.rank > lane.rank or (
                o.rank == lane.rank and _compare_numbers(t.numbers, count, lane.numbers, lane.count) > 0
            )
    o.lane = lane
    if o.is_later:
        return _put(o.head, <uint8_t>(5 + o.rank)) or _put_integers(o.head, t.numbers, count) or _put_integer(o.head, 0)
    if _put(o.head, <uint8_t>(5 + lane.rank)) or _put_integers(o.head, lane.numbers, lane.count):
        return LEFT
    return _put_integer(o.head, lane.moves)


cdef void _advance(Typing *t) noexcept nogil:
    """Let the time of a lane be that of the message whose rows were made, which moves no keys."""
    cdef Ordering *o = &t.order
    cdef Lane *lane = o.lane
    if lane == NULL or o.is_again:
        return
    o.lane = NULL
    lane.offset, lane.line, lane.is_known, lane.is_changed = o.place[OFFSET].value, o.place[LINE].value, True, True
    if o.is_later:
        lane.rank, lane.moves, lane.count = o.rank, 0, t.number_count if t.number_count > 0 else 0
        memcpy(lane.numbers, t.numbers, lane.count * sizeof(int64_t))


cdef Lane *_new_lane(Ordering *o) noexcept nogil:
    """Return a new lane, of the name that the last message's has; NULL without room."""
    cdef uint64_t hash = cdcavro_hash(o.name.out, o.name.size)
    cdef Lane *lane = _slot_of_lane(o, hash)
    cdef Py_ssize_t name = o.names.size
    if _put_bytes(o.names, o.name.out, o.name.size):
        return NULL
    memset(lane, 0, sizeof(Lane))
    lane.stamp, lane.hash, lane.name, lane.size = o.stamp, hash, name, o.name.size
    o.met[o.lane_count] = <int16_t>(lane - o.lanes)
    o.lane_count += 1
    return lane


cdef int _open_order(Ordering *o, bint is_asked) except -1:
    """Make room for the order of rows."""
    o.is_asked, o.stamp = is_asked, 1
    o.made = <Run *>calloc(1, sizeof(Run))
    o.head = <Run *>calloc(1, sizeof(Run))
    o.file = <Run *>calloc(1, sizeof(Run))
    o.name = <Run *>calloc(1, sizeof(Run))
    o.names = <Run *>calloc(1, sizeof(Run))
    o.lanes = <Lane *>calloc(LANE_SLOTS if is_asked else 1, sizeof(Lane))
    if o.made == NULL or o.head == NULL or o.file == NULL or o.name == NULL or o.names == NULL or o.lanes == NULL:
        raise MemoryError
    return 0


cdef void _forget_lanes(Ordering *o) noexcept:
    o.lane_count = 0
    o.names.size = 0
    o.stamp += 1


cdef void _shrink_order(Ordering *o, bint is_waiting) noexcept:
    """Give back much room, but for that of the rows of columns that wait to be taken."""
    _shrink(o.head)
    _shrink(o.file)
    _shrink(o.name)
    _shrink(o.names)
    if not is_waiting:
        _shrink(o.made)


cdef void _close_order(Ordering *o) noexcept:
    """Free what `_open_order` made."""
    _tear_down(o.made)
    _tear_down(o.head)
    _tear_down(o.file)
    _tear_down(o.name)
    _tear_down(o.names)
    free(o.lanes)


cdef class Lanes:
    """What a clock told of lanes, until it is told what became of them."""

    cdef object clock
    cdef list names

    def __cinit__(self, clock):
        self.clock, self.names = clock, []

    cdef int settle(self, Ordering *o) except -1:
        """Tell the clock the times of lanes that have another, and forget all of them."""
        cdef Lane *lane
        cdef int i, k
        cdef list names = self.names
        cdef int count = o.lane_count
        self.names = []
        _forget_lanes(o)
        for i in range(count):
            lane = o.lanes + o.met[i]
            if lane.is_changed:
                topic, partition, file = names[i]
                numbers = tuple([lane.numbers[k] for k in range(lane.count)])
                self.clock.put(
                    names[i], (topic, partition, lane.offset, file, lane.line), (lane.rank, numbers, lane.moves)
                )
        return 0

    cdef int meet(self, Ordering *o) except -1:
        """Ask the clock for the time of the lane of the message that was left for it."""
        cdef Lane *lane
        cdef int64_t number
        if o.lane_count == MOST_LANES:
            self.settle(o)
        lane = _new_lane(o)
        if lane == NULL:
            raise MemoryError
        try:
            name = (
                PyBytes_FromStringAndSize(<const char *>o.place[TOPIC].start, o.place[TOPIC].value).decode(),
                o.place[PARTITION].value,
                PyBytes_FromStringAndSize(<const char *>o.file.out, o.file.size).decode(),
            )
            self.names.append(name)
            found = self.clock.get(name)
            if found is not None:
                place, (rank, numbers, moves) = found
                lane.is_left = len(numbers) > MOST_LANE_NUMBERS or not 0 <= rank <= 2
                _, _, lane.offset, _, lane.line = place
                lane.rank, lane.moves, lane.is_known = rank, moves, True
                for number in numbers[:MOST_LANE_NUMBERS]:
                    lane.numbers[lane.count] = number
                    lane.count += 1
        except (OverflowError, UnicodeDecodeError):
            lane.is_left = True
        if len(self.names) < o.lane_count:
            self.names.append(None)
        return 0
