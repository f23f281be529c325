# The order of rows: where their messages arrived, the time of their lane (a topic partition or file), and the order
# values, which compare byte by byte; `change/order_value.py` and `change/order.py` say what these are.


cdef const char *NO_PLACE = b"\0\0\0\0\0"

cdef enum:  # OrderKind: what orders the changes of a pattern, as `common_order` in `change/order_value.py` counts it
    OF_FULL_LOAD, BY_NUMBERS, BY_ARRIVAL

cdef enum:  # PlaceField: as `Arrival` in `change/model.py` has them
    TOPIC, PARTITION, OFFSET, FILE_, LINE, FIELDS

cdef enum:
    MOST_LANES = 128  # that are known at a time
    LANE_SLOTS = 256

cdef struct PlaceValue:  # a field of a place: an integer, or where a text begins and its length
    bint has
    const uint8_t *start
    int64_t value

cdef struct Lane:
    uint64_t stamp  # of the last time that lanes were forgotten before this one was met
    uint64_t hash
    Py_ssize_t name  # where in the names of lanes
    Py_ssize_t size
    bint is_known  # the clock told its time
    bint is_left  # the clock told what has no room here
    bint is_changed
    int64_t offset  # of its last message
    int64_t line
    int64_t rank
    int64_t moves
    int count
    int64_t numbers[MOST_NUMBERS]

cdef struct Ordering:
    bint is_asked
    bint has_clock
    bint is_unknown  # the lane of a message was not met yet
    bint lacks  # the last row that was written lacks columns
    bint moves  # a row of the message moves to another key
    bint is_moving  # that is known, and counts in the time of its lane
    Run *made  # order values of rows
    Run *head  # what those of a message begin with
    Run *file  # as it sorts
    Run *name  # of the message's lane
    Run *names
    PlaceValue place[FIELDS]
    int64_t row
    int rank
    const int64_t *numbers  # of the message; 0, its second and 1 where arrival is the order and it has none
    int count
    int64_t timed[3]
    bint is_later  # the message's own numbers are its lane's time
    bint is_again  # the place is the last of its lane
    Lane *lane
    Lane *lanes
    int16_t met[MOST_LANES]
    int lane_count
    uint64_t stamp


cdef int _put_integer(Run *o, int64_t value) noexcept nogil:
    """Put out an integer behind a byte that has its sign and length: a greater one has a greater first byte."""
    cdef uint64_t rest = <uint64_t>value if value >= 0 else 0 - <uint64_t>value
    cdef int size = 0
    while rest:
        size += 1
        rest >>= 8
    if _reserve(o, 9):
        return LEFT
    o.out[o.size] = <uint8_t>(128 + size if value >= 0 else 128 - size)
    o.size += 1
    while size > 0:
        size -= 1
        o.out[o.size] = <uint8_t>(<uint64_t>value >> (8 * size) & 255)
        o.size += 1
    return OK


cdef int _put_integers(Run *o, const int64_t *numbers, int count) noexcept nogil:
    cdef int i
    for i in range(count):
        if _put_integer(o, numbers[i]):
            return LEFT
    return _put(o, 0)


cdef int _put_ordered_text(Run *o, const uint8_t *at, Py_ssize_t size) noexcept nogil:
    """Put out a text, in which a zero byte has another behind it that no end has."""
    cdef const uint8_t *end = at + size
    cdef const uint8_t *zero
    if _reserve(o, size + 2):
        return LEFT
    while at < end:
        zero = <const uint8_t *>memchr(at, 0, end - at)
        if zero == NULL:
            zero = end
        if _put_bytes(o, at, zero - at):
            return LEFT
        if zero < end and (_put(o, 0) or _put(o, 255)):
            return LEFT
        at = zero + 1 if zero < end else end
    return _put(o, 0) or _put(o, 0)


cdef int _put_file_order(Run *o, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Put out a file's name as it sorts, each number in it with 20 digits.

    Behind that stands the name itself if a number in it has zeros before it, so that `1` and `01` differ.
    """
    cdef const uint8_t *at = start
    cdef const uint8_t *end = start + size
    cdef const uint8_t *first
    cdef const uint8_t *digits
    cdef bint has_zeros = False, differs = False
    cdef Py_ssize_t i
    if _reserve(o, size + 1):
        return LEFT
    while at < end:
        first = at
        while at < end and not 48 <= at[0] <= 57:
            at += 1
        if _put_bytes(o, first, at - first):
            return LEFT
        first = digits = at
        while digits < end and digits[0] == 48:
            digits += 1
        at = digits
        while at < end and 48 <= at[0] <= 57:
            at += 1
        if at == first:
            continue
        has_zeros = has_zeros or (at - first > 1 and first[0] == 48)
        differs = differs or at - first != max(20, at - digits)
        for i in range(20 - (at - digits)):
            if _put(o, 48):
                return LEFT
        if _put_bytes(o, digits, at - digits):
            return LEFT
    if differs and has_zeros:
        return _put(o, 32) or _put_bytes(o, start, size)
    return OK


cdef int _take_place(Run *r, PlaceValue *fields, const uint8_t *at, Py_ssize_t size) noexcept nogil:
    """Take the encoded fields of a place, where they are not null, over those that were taken before."""
    cdef int i
    cdef int64_t value
    r.at, r.end = at, at + size
    for i in range(FIELDS):
        if r.at >= r.end or (r.at[0] != 0 and r.at[0] != 2):
            return LEFT
        r.at += 1
        if r.at[-1] == 0:
            continue
        if _read_long(r, &value):
            return LEFT
        fields[i].has, fields[i].value, fields[i].start = True, value, r.at
        if i == TOPIC or i == FILE_:
            if value < 0 or value > r.end - r.at:
                return LEFT
            r.at += value
    return OK


cdef int _find_place(Typing *t, const Pattern *p, bint *is_place) noexcept nogil:
    """Give the place of a message as it sorts, and whether it orders arrivals.

    If it does not, its fields are none, unless there is an offset among them.
    """
    cdef Ordering *o = &t.order
    cdef PlaceValue *fields = o.place
    cdef bint is_offset, is_line
    cdef int i
    memset(fields, 0, FIELDS * sizeof(PlaceValue))
    if _take_place(t.run, fields, p.place, p.place_size) or _take_place(t.run, fields, t.place, t.place_size):
        return LEFT
    is_offset = fields[OFFSET].has and (not fields[TOPIC].has or fields[PARTITION].has)
    is_line = fields[FILE_].has and fields[LINE].has
    is_place[0] = is_offset or is_line
    o.file.size = 0
    if is_line and not is_offset:
        if _put_file_order(o.file, fields[FILE_].start, fields[FILE_].value):
            return LEFT
        for i in range(FILE_):
            fields[i].value = 0
        return OK
    for i in range(FIELDS):
        if not fields[OFFSET].has or i == LINE:
            fields[i].value = 0
    return OK


cdef int _begin_order(Typing *t, const Pattern *p) noexcept nogil:
    """Put out what the order values of a message's rows begin with; stop at one with neither numbers nor a place."""
    cdef Ordering *o = &t.order
    cdef const PlaceValue *place = o.place
    cdef bint is_place, is_by_place
    o.row = t.line_row
    o.lane = NULL
    o.head.size = 0
    if _find_place(t, p, &is_place) or (t.number_count < 0 and not is_place) or _put(o.head, p.phase):
        return LEFT
    o.rank = 0 if t.number_count < 0 else 1 if p.is_batched and not t.has_event else 2
    is_by_place = p.order == BY_ARRIVAL and is_place
    o.numbers, o.count = t.numbers, t.number_count if t.number_count > 0 else 0
    if is_by_place and t.number_count == 0 and t.has_event and p.op != 114:
        o.timed[0], o.timed[1], o.timed[2] = 0, t.event // 1000000, 1
        o.numbers, o.count = o.timed, 3
    if is_by_place and o.has_clock:
        if _put_time(t):
            return LEFT
    elif is_by_place:
        if _put(o.head, 4) or _put(o.head, 0):
            return LEFT
    elif p.order == OF_FULL_LOAD:
        if _put(o.head, 0) or _put(o.head, 0):
            return LEFT
    elif _put(o.head, <uint8_t>(1 + o.rank)) or _put_integers(o.head, o.numbers, o.count):
        return LEFT
    if _put_ordered_text(o.head, place[TOPIC].start, place[TOPIC].value):
        return LEFT
    if _put_integer(o.head, place[PARTITION].value):
        return LEFT
    if _put_integer(o.head, place[OFFSET].value) or _put_ordered_text(o.head, o.file.out, o.file.size):
        return LEFT
    if _put_integer(o.head, place[LINE].value) or (is_by_place and _put(o.head, <uint8_t>o.rank)):
        return LEFT
    return _put_integers(o.head, o.numbers, o.count if is_by_place else 0)


cdef int _put_order(Typing *t, int part) noexcept nogil:
    """Put out the order value of the next row of a message, or of the delete of a key that it moves away."""
    cdef Ordering *o = &t.order
    if _put_bytes(o.made, o.head.out, o.head.size) or _put(o.made, part != MOVED_AWAY) or _put_integer(o.made, o.row):
        return LEFT
    o.row += part != MOVED_AWAY
    return OK


cdef tuple _made_orders(Typing *t):
    """Return the order values of the rows that were made, and a bit for each that lacks columns, as columns."""
    cdef Py_ssize_t count = t.made_count, i
    cdef bytes ends = PyBytes_FromStringAndSize(NULL, (count + 1) * sizeof(int32_t))
    cdef bytes lacking = bytes((count + 7) // 8)
    cdef char *at = PyBytes_AS_STRING(ends)
    cdef char *bits = PyBytes_AS_STRING(lacking)
    cdef int32_t end = 0
    memcpy(at, &end, 4)
    for i in range(count):
        end = <int32_t>t.made[i].order
        memcpy(at + 4 * i + 4, &end, 4)
        if t.made[i].lacks:
            bits[i >> 3] = <char>(bits[i >> 3] | 1 << (i & 7))
    return ends, PyBytes_FromStringAndSize(<const char *>t.order.made.out, t.order.made.size), lacking


# The lanes whose time a clock told, and their time since; `change/order.py` says what that is.

cdef int _name_lane(Ordering *o) noexcept nogil:
    """Put out what a message's lane is called."""
    o.name.size = 0
    if _put_ordered_text(o.name, o.place[TOPIC].start, o.place[TOPIC].value):
        return LEFT
    if _put_integer(o.name, o.place[PARTITION].value):
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
        if lane.hash == hash and lane.size == o.name.size:
            if memcmp(o.names.out + lane.name, o.name.out, lane.size) == 0:
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
                o.rank == lane.rank and _compare_numbers(o.numbers, o.count, lane.numbers, lane.count) > 0
            )
    o.lane = lane
    if o.is_later:
        if _put(o.head, <uint8_t>(5 + o.rank)) or _put_integers(o.head, o.numbers, o.count):
            return LEFT
        return _put_integer(o.head, o.is_moving)
    if _put(o.head, <uint8_t>(5 + lane.rank)) or _put_integers(o.head, lane.numbers, lane.count):
        return LEFT
    return _put_integer(o.head, lane.moves + (o.is_moving and not o.is_again))


cdef void _advance(Typing *t) noexcept nogil:
    """Let the time of a lane be that of the message whose rows were made."""
    cdef Ordering *o = &t.order
    cdef Lane *lane = o.lane
    if lane == NULL or o.is_again:
        return
    o.lane = NULL
    lane.offset, lane.line, lane.is_known, lane.is_changed = o.place[OFFSET].value, o.place[LINE].value, True, True
    if o.is_later:
        lane.rank, lane.moves, lane.count = o.rank, o.is_moving, o.count
        memcpy(lane.numbers, o.numbers, lane.count * sizeof(int64_t))
    else:
        lane.moves += o.is_moving


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
                lane.is_left = len(numbers) > MOST_NUMBERS or not 0 <= rank <= 2
                _, _, lane.offset, _, lane.line = place
                lane.rank, lane.moves, lane.is_known = rank, moves, True
                for number in numbers[:MOST_NUMBERS]:
                    lane.numbers[lane.count] = number
                    lane.count += 1
        except (OverflowError, UnicodeDecodeError):
            lane.is_left = True
        if len(self.names) < o.lane_count:
            self.names.append(None)
        return 0


# Places that stand in columns of their own, as a column of the encoded fields of `source`.

cdef int _put_place_text(Run *o, const Column *column, Py_ssize_t i) noexcept nogil:
    cdef ColumnValue text
    if _column_value(column, i, &text):
        return LEFT
    if text.start == NULL:
        return _put(o, 0)
    return _put(o, 2) or _put_long(o, text.size) or _put_bytes(o, text.start, text.size)


cdef int _put_place_long(Run *o, const Column *column, Py_ssize_t i) noexcept nogil:
    cdef const uint8_t *validity = <const uint8_t *>column.validity.buf
    cdef Py_ssize_t at = column.first + i
    cdef int64_t value
    if column.has_nulls and not validity[at >> 3] >> (at & 7) & 1:
        return _put(o, 0)
    memcpy(&value, <const char *>column.data.buf + 8 * at, 8)
    return _put(o, 2) or _put_long(o, value)


cdef int _put_places(Run *o, const Column *columns, const bint *given, Py_ssize_t count, char *ends) noexcept nogil:
    """Put out the fields of all places, and where each ends, from 0 on."""
    cdef Py_ssize_t i
    cdef int k
    cdef int32_t end = 0
    memcpy(ends, &end, 4)
    for i in range(count):
        for k in range(FIELDS):
            if not given[k]:
                if _put(o, 0):
                    return LEFT
            elif k == TOPIC or k == FILE_:
                if _put_place_text(o, columns + k, i):
                    return LEFT
            elif _put_place_long(o, columns + k, i):
                return LEFT
        if o.size > INT32_MAX:
            return LEFT
        end = <int32_t>o.size
        memcpy(ends + 4 * i + 4, &end, 4)
    return OK


def encode_places(tuple fields not None, Py_ssize_t count):
    """Return places as a column of the encoded fields of `source`: the bytes, and where each ends, from 0 on.

    `fields` are the topic, partition, offset, file and line, each a column of so many values, or None if no place has
    it: texts are `Slices`, and integers `Longs`. Raises `ValueError` for other columns, and for more than 2 GiB.
    """
    cdef Column columns[5]
    cdef bint given[5]
    cdef int k, failed
    cdef char *at
    cdef bytes ends
    cdef Run *o
    if len(fields) != FIELDS or not 0 <= count < INT32_MAX:
        raise ValueError("five columns of places")
    ends = PyBytes_FromStringAndSize(NULL, 4 * (count + 1))
    at = PyBytes_AS_STRING(ends)
    o = <Run *>calloc(1, sizeof(Run))
    if o == NULL:
        raise MemoryError
    memset(given, 0, sizeof(given))
    try:
        for k in range(FIELDS):
            if fields[k] is not None:
                if k == TOPIC or k == FILE_:
                    _open_column(columns + k, fields[k])
                else:
                    _open_longs(columns + k, fields[k])
                given[k] = True
                if columns[k].count != count:
                    raise ValueError("as many values in each column of places")
        with nogil:
            failed = _put_places(o, columns, given, count, at)
        if failed:
            raise ValueError("places whose texts are within their columns, of at most 2 GiB")
        return PyBytes_FromStringAndSize(<const char *>o.out, o.size), ends
    finally:
        for k in range(FIELDS):
            if given[k]:
                _close_column(columns + k)
        _tear_down(o)
