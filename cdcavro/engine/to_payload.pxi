# Text to payload: values, the members of a record in the order of its fields, and a whole message, which may stand in a
# Kafka record.


cdef enum:  # what became of a member; 0 is that it was not reached yet
    LEFT_OUT = 1
    WRITTEN = 2

cdef enum:
    OF_HEAD = -1  # how many entries a map has that stands in a head
    FREE = 64 << 10
    PROPORTION = 64
    WORTH_KEEPING = 256  # bytes of a JSON text, for the next message

cdef struct Slice:  # where a member was written, and its notes
    Py_ssize_t start
    Py_ssize_t stop
    Py_ssize_t state
    Py_ssize_t first_note
    Py_ssize_t last_note

cdef struct Cursor:  # where in a record a message is
    const Instruction *record
    int node
    int others  # the map of members that have no field; the record itself where they are noted
    bint has_rest
    int level
    uint32_t own
    Py_ssize_t base  # of its slices
    Py_ssize_t begin  # where it begins in what is written, and its notes
    Py_ssize_t first_note
    int32_t *follows  # which member comes next, as far as the last message tells
    int last
    bint shuffled
    bint gaps
    int64_t unnamed  # members that have no field
    const uint8_t *name
    Py_ssize_t size
    KnownName *known
    Py_ssize_t place
    Py_ssize_t noted


# Text to payload, the quick way: values that are as plain as most are, in the order of the last message.
#
# Pointers are kept in variables of these functions, because whoever goes through the run has to read each again after
# every byte that is put out. What is put out here is never longer than what it takes, so room is made only once. Short
# doubles are the exception: they are put out only as long as what is behind them still has its room.

cdef inline const uint8_t *_put_text(Run *r, const uint8_t *at, uint8_t **out) noexcept nogil:
    """Put out a string that has no escapes."""
    cdef uint8_t *to = out[0]
    cdef const uint8_t *stop
    cdef uint32_t not_ascii
    at += 1
    stop = cdcavro_copy_plain(to + 1, at, r.end, r.end, &not_ascii)
    if stop >= r.end or stop[0] != 34:
        return NULL
    if stop - at < 64:
        to[0] = <uint8_t>((stop - at) << 1)
        out[0] = to + 1 + (stop - at)
        return stop + 1
    to += cdcavro_varint(to, <uint64_t>(stop - at) << 1)
    memcpy(to, at, stop - at)
    out[0] = to + (stop - at)
    return stop + 1


cdef inline const uint8_t *_put_number(
    Run *r, const Instruction *type, const uint8_t *start, uint8_t **out
) noexcept nogil:
    """Put out an integer of up to 18 digits, or in a column a double."""
    cdef bint negative = start[0] == 45
    cdef const uint8_t *at = start + negative
    cdef const uint8_t *end = r.end if r.end - at < 40 else at + 40  # what is longer is not looked at twice
    cdef const uint8_t *stop = cdcavro_pass_digits(at, end)
    cdef uint8_t *to = out[0]
    cdef uint64_t whole
    cdef double value
    if stop == at or stop - at > 18 or stop >= end or (at[0] == 48 and stop - at > 1):
        return NULL
    if stop[0] == 46 and type.kind == COLUMN:
        at = cdcavro_pass_digits(stop + 1, end)
        if at == stop + 1 or r.room - (to - r.out) < r.end - at + 9 or not _as_double(start, at, &value):
            return NULL
        to[0] = <uint8_t>(type.a[3] << 1)
        memcpy(to + 1, &value, 8)
        out[0] = to + 9
        return at
    whole = cdcavro_whole(at, stop)
    if whole > 0x7FFFFFFF and type.kind == INT or whole == 0 and negative:
        return NULL
    if type.kind == COLUMN:
        to[0] = <uint8_t>(type.a[2] << 1)
        to += 1
    out[0] = to + cdcavro_varint(to, (whole << 1) - negative)
    return stop


cdef inline const uint8_t *_put_word(
    Run *r, const Instruction *type, const uint8_t *at, uint8_t **out
) noexcept nogil:
    """Put out true or false."""
    cdef int size = 4 if at[0] == 116 else 5
    if r.end - at < size or memcmp(at, b"true" if at[0] == 116 else b"false", size) != 0:
        return NULL
    if type.kind == COLUMN:
        out[0][0] = <uint8_t>(type.a[1] << 1)
        out[0] += 1
    out[0][0] = at[0] == 116
    out[0] += 1
    return at + size


cdef inline const uint8_t *_put_symbol(
    Run *r, const Instruction *symbols, const uint8_t *at, uint8_t **out
) noexcept nogil:
    """Put out a string that is a symbol."""
    cdef const int32_t *symbol = r.symbols + symbols.a[0]
    cdef int i
    for i in range(symbols.a[1]):
        if cdcavro_begins(at, r.end, r.texts + symbol[0], symbol[1]) and i != symbols.a[2]:
            out[0] += cdcavro_varint(out[0], <uint64_t>i << 1)
            return at + symbol[1]
        symbol += 2
    return NULL


cdef inline const uint8_t *_put_value(Run *r, const Instruction *type, const uint8_t *at, uint8_t **out) noexcept nogil:
    """Put out a scalar as it mostly is, and return where it ends; NULL for anything else."""
    cdef uint8_t c = at[0]
    if c == 110 and (type.kind == OPTIONAL or type.kind == COLUMN):
        out[0][0] = <uint8_t>((type.a[2] if type.kind == OPTIONAL else type.a[0]) << 1)
        out[0] += 1
        return at + 4 if r.end - at > 4 and memcmp(at, b"null", 4) == 0 else NULL
    if type.kind == OPTIONAL:
        out[0][0] = <uint8_t>(type.a[1] << 1)
        out[0] += 1
        type = r.code + type.a[0]
    if c == 34:
        if type.kind == COLUMN:
            out[0][0] = <uint8_t>(type.a[4] << 1)
            out[0] += 1
        elif type.kind == ENUM:
            return _put_symbol(r, type, at, out)
        return _put_text(r, at, out) if type.kind == COLUMN or type.kind == STRING else NULL
    if type.kind == COLUMN or type.kind == LONG or type.kind == INT:
        if c <= 57:
            return _put_number(r, type, at, out)
    if (c == 116 or c == 102) and (type.kind == COLUMN or type.kind == BOOLEAN):
        return _put_word(r, type, at, out)
    return NULL


cdef inline bint _is_scalar_type(Run *r, const Instruction *type) noexcept nogil:
    """Return whether values of a type may be put out the quick way."""
    if type.kind == OPTIONAL:
        type = r.code + type.a[0]
    return type.kind <= ENUM or type.kind == COLUMN


cdef inline bint _goes_on(const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Return whether an object goes on or ends right behind a value."""
    return at < end and (at[0] == 44 or at[0] == 125)


cdef inline KnownName *_put_name(
    Run *r, int node, int number, uint64_t stamp, const uint8_t **at, uint8_t **out
) noexcept nogil:
    """Put out the name that is to be expected, and return it; NULL if it is not next, or the object has it already."""
    cdef KnownName *known = _guess(r, node, number)
    cdef const uint8_t *label
    if known == NULL or known.stamp == stamp:
        return NULL
    label = known.label
    if r.end - at[0] <= known.label_size or not cdcavro_begins(at[0], r.end, label, known.label_size):
        return NULL
    at[0] += known.label_size
    label += known.label_size
    cdcavro_copy(out[0], label, known.size + 1, label + LONGEST)
    out[0] += known.size + 1
    return known


cdef int _write_quick_entries(
    Run *r, int node, uint32_t own, int32_t **follows, int64_t *count, KnownName **known
) noexcept nogil:
    """Write the entries of a map that are the expected ones, up to the end, or to the first that is not plain.

    `known` is the name of that one, which is passed by, NULL if it is not the expected one either.
    """
    cdef const Instruction *type = r.code + r.code[node].a[0]
    cdef const uint8_t *at = r.at
    cdef const uint8_t *after
    cdef uint8_t *out
    cdef uint8_t *written
    cdef uint64_t stamp = _stamp(r, own)
    if _reserve(r, r.end - r.at):
        return LEFT
    out = written = r.out + r.size
    while True:
        known[0] = _put_name(r, node, follows[0][0], stamp, &at, &out)
        if known[0] == NULL:
            break
        after = _put_value(r, type, at, &out)
        if after == NULL or not _goes_on(after, r.end):
            break
        known[0].stamp = stamp
        follows[0] = &known[0].next
        count[0] += 1
        at, written = after + 1, out
        if after[0] == 125:
            r.at, r.size = at, written - r.out
            return ENDED
    r.at, r.size = at, written - r.out
    return OK


cdef inline int _place(Run *r, Cursor *c, int i) noexcept nogil:
    """Begin with a member, which may be there only once."""
    if r.slices[c.base + i].state > LEFT_OUT:
        return LEFT
    if i < c.last:
        c.shuffled = True
        return OK
    if i > c.last + 1 and _leave_out(r, c, c.last + 1, i):
        return LEFT
    c.last = i
    return OK


cdef inline bint _put_other(Run *r, Cursor *c, const uint8_t **at, uint8_t **out) noexcept nogil:
    """Put out a plain entry of the rest map that stands behind another; else say which it is and pass its name by."""
    cdef Slice *slice = r.slices + r.depth - 1
    cdef uint8_t *place = out[0]
    cdef const uint8_t *after
    c.known = _put_name(r, c.others, c.follows[0] - c.record.a[1], _stamp(r, c.own), at, out)
    if c.known == NULL or not c.has_rest:
        return False
    if r.depth == c.base + c.record.a[1] or slice.stop != place - r.out or slice.last_note != r.noted:
        return False
    after = _put_value(r, r.code + r.code[c.others].a[0], at[0], out)
    if after == NULL or not _goes_on(after, r.end):
        return False
    c.known.stamp = _stamp(r, c.own)
    c.follows = &c.known.next
    c.unnamed += 1
    slice.stop = out[0] - r.out
    at[0] = after + 1
    return True


cdef inline bint _put_member(Run *r, Cursor *c, int i, const uint8_t **at, uint8_t **out) noexcept nogil:
    """Put out a plain member."""
    cdef const Member *member = r.members + c.record.a[0] + i
    cdef Slice *slice = r.slices + c.base + i
    cdef Py_ssize_t place = out[0] - r.out
    cdef const uint8_t *after
    if at[0][0] == 110 and member.missing != NULL_:
        return False
    after = _put_value(r, r.code + member.node, at[0], out)
    if after == NULL or not _goes_on(after, r.end):
        return False
    slice.state, slice.start, slice.stop = WRITTEN, place, out[0] - r.out
    slice.first_note = slice.last_note = r.noted
    at[0] = after + 1
    return True


cdef inline const uint8_t *_label_here(Run *r, const Member *member, const uint8_t *at) noexcept nogil:
    """Return where a member's value begins if its name is here, else NULL."""
    if member.size == 0 or r.end - at <= member.size:
        return NULL
    return at + member.size if cdcavro_begins(at, r.end, r.texts + member.label, member.size) else NULL


cdef int _write_quick_members(Run *r, Cursor *c, int *index) noexcept nogil:
    """Write the members of a record that are the expected ones, up to the end, or to the first that is not plain.

    Of that one, the name is passed by and the index given, -1 in the rest map; -2 if it is not the expected one either.
    """
    cdef const uint8_t *at = r.at
    cdef const uint8_t *value
    cdef uint8_t *out
    cdef uint8_t *written
    cdef int i
    if _reserve(r, r.end - r.at):
        return LEFT
    out = written = r.out + r.size
    while True:
        i = c.follows[0]
        if i >= c.record.a[1]:
            if not _put_other(r, c, &at, &out):
                index[0] = -2 if c.known == NULL else -1
                break
        else:
            value = _label_here(r, r.members + c.record.a[0] + i, at)
            if value == NULL:
                index[0] = -2
                break
            at = value
            c.follows = r.follows + c.record.a[0] + i
            if i == c.last + 1:
                c.last = i
            else:
                r.size = written - r.out
                if _place(r, c, i) or _reserve(r, r.end - at):
                    return LEFT
                out = written = r.out + r.size
            if not _put_member(r, c, i, &at, &out):
                index[0] = i
                break
        written = out
        if (at - 1)[0] == 125:
            r.at, r.size = at, written - r.out
            return ENDED
    r.at, r.size = at, written - r.out
    return OK


# Values, whatever they are like.

cdef int _write_string(Run *r) noexcept nogil:
    """Write the string whose opening quote is here."""
    cdef const uint8_t *start
    cdef Py_ssize_t size
    cdef uint32_t not_ascii
    cdef uint8_t *place
    # What a string puts out is never longer than what it takes, but for its length, which stands before it.
    if _reserve(r, r.end - r.at + VARINT):
        return LEFT
    r.at += 1
    start = r.at
    place = r.out + r.size
    r.at = cdcavro_copy_plain(place + 1, start, r.end, r.end, &not_ascii)
    if r.at >= r.end:
        return LEFT
    size = r.at - start
    if r.at[0] != 34:
        return _write_escaped(r, size)
    r.at += 1
    if size < 64:
        place[0] = <uint8_t>(size << 1)
        r.size += size + 1
        return OK
    r.size += cdcavro_varint(place, <uint64_t>size << 1)
    memcpy(r.out + r.size, start, size)
    r.size += size
    return OK


cdef int _write_escaped(Run *r, Py_ssize_t size) noexcept nogil:
    """Write the rest of a string, of which `size` bytes up to an escape stand one byte behind the end."""
    cdef Py_ssize_t place = r.size
    r.size += size + 1
    if _text(r):
        return LEFT
    return _insert_long(r, place, 1, r.size - place - 1)


cdef int _write_json(Run *r, int level) noexcept nogil:
    """Write the text of an object or array in its compact form; it may be the one that came before on its level."""
    cdef const uint8_t *start = r.at
    cdef Repeated *kept = r.repeated + (level & 7)
    cdef Py_ssize_t place, size = kept.size if level < 8 else 0
    cdef bint odd = r.odd
    if size and r.end - r.at >= size and memcmp(r.at, kept.text, size) == 0:
        # It ends with its bracket, so it goes no further.
        r.at += size
        kept.run = r.run
        return _put_long(r, size) or _put_bytes(r, start, size)
    if _reserve(r, 5):
        return LEFT
    place = r.size
    r.size += 5
    r.odd = False
    if _copy_json(r, level):
        return LEFT
    size = r.size - place - 5
    # What is not compact is not only itself that is written.
    if WORTH_KEEPING <= size == r.at - start and level < 8 and kept.run != r.run and not r.odd:
        if memcmp(start, r.out + place + 5, size) == 0:
            _repeat(kept, start, size, r.run)
    r.odd |= odd
    return _insert_long(r, place, 5, size)


cdef void _repeat(Repeated *kept, const uint8_t *text, Py_ssize_t size, uint32_t run) noexcept nogil:
    """Keep a text for the next message."""
    cdef uint8_t *room
    if size > kept.room:
        room = <uint8_t *>realloc(kept.text, size)
        if room == NULL:
            return
        kept.text, kept.room = room, size
    memcpy(kept.text, text, size)
    kept.size, kept.run = size, run


cdef int _write_column(Run *r, const Instruction *column, int level) noexcept nogil:
    cdef uint8_t c = r.at[0]
    cdef const uint8_t *start
    cdef int kind
    cdef int64_t whole
    cdef double value
    if c == 34:
        return _put(r, column.a[4] << 1) or _write_string(r)
    if c == 110:
        return _take_word(r, b"null", 4) or _put(r, column.a[0] << 1)
    if c == 116:
        return _take_word(r, b"true", 4) or _put(r, column.a[1] << 1) or _put(r, 1)
    if c == 102:
        return _take_word(r, b"false", 5) or _put(r, column.a[1] << 1) or _put(r, 0)
    if c == 123 or c == 91:
        return _put(r, column.a[6] << 1) or _write_json(r, level)
    kind = _scan_number(r, &start)
    if kind == 0 or _reserve(r, VARINT + 1):
        return LEFT
    if kind == INTEGER and _as_long(start, r.at, &whole):
        r.out[r.size] = <uint8_t>(column.a[2] << 1)
        r.size += 1 + cdcavro_varint(r.out + r.size + 1, (<uint64_t>whole << 1) ^ <uint64_t>(whole >> 63))
        return OK
    if kind == FRACTION and _as_double(start, r.at, &value):
        r.out[r.size] = <uint8_t>(column.a[3] << 1)
        memcpy(r.out + r.size + 1, &value, 8)
        r.size += 9
        return OK
    return _put(r, column.a[5] << 1) or _put_long(r, r.at - start) or _put_bytes(r, start, r.at - start)


cdef int _write_integer(Run *r, bint is_int) noexcept nogil:
    """Write an integer; that of a string is noted."""
    cdef const uint8_t *start
    cdef int64_t value
    cdef bint quoted = r.at[0] == 34
    r.at += quoted
    if _scan_number(r, &start) != INTEGER or not _as_long(start, r.at, &value):
        return LEFT
    if quoted:
        if r.at >= r.end or r.at[0] != 34:
            return LEFT
        r.at += 1
        if _note(r, start - 1, r.at - start + 1):
            return LEFT
    if is_int and not -(<int64_t>1 << 31) <= value < <int64_t>1 << 31:
        return LEFT
    return _put_long(r, value)


cdef int _write_enum(Run *r, const Instruction *symbols) noexcept nogil:
    cdef const uint8_t *start = r.at
    cdef Py_ssize_t size
    cdef int i
    cdef const int32_t *symbol = r.symbols + symbols.a[0]
    if r.at[0] != 34:
        return LEFT
    r.at = cdcavro_plain(r.at + 1, r.end, r.end)
    if r.at >= r.end or r.at[0] != 34:
        return LEFT
    r.at += 1
    size = r.at - start
    for i in range(symbols.a[1]):
        if symbol[1] == size and i != symbols.a[2] and memcmp(start, r.texts + symbol[0], size) == 0:
            return _put_long(r, i)
        symbol += 2
    if _note(r, start, size):
        return LEFT
    symbol = r.symbols + symbols.a[3]
    for i in range(symbols.a[4]):
        if symbol[1] == size and memcmp(start, r.texts + symbol[0], size) == 0:
            return _put_long(r, symbol[2])
        symbol += 3
    return LEFT if symbols.a[2] < 0 else _put_long(r, symbols.a[2])


cdef int _write_plain(Run *r) noexcept nogil:
    """Write a string, or the text of another scalar, which is noted."""
    cdef const uint8_t *start = r.at
    cdef Py_ssize_t size
    if start[0] == 34:
        return _write_string(r)
    if start[0] == 116:
        if _take_word(r, b"true", 4):
            return LEFT
    elif start[0] == 102:
        if _take_word(r, b"false", 5):
            return LEFT
    elif _scan_number(r, &start) == 0:
        return LEFT
    size = r.at - start
    return _note(r, start, size) or _put_long(r, size) or _put_bytes(r, start, size)


cdef int _write_array(Run *r, const Instruction *array, int level) noexcept nogil:
    cdef Py_ssize_t place = r.size
    cdef int64_t count = 0
    if r.at[0] != 91 or level > r.most_levels or _put(r, 0):
        return LEFT
    r.at += 1
    _skip_space(r)
    if r.at < r.end and r.at[0] == 93:
        r.at += 1
        return OK
    while True:
        _step(r, NULL, 0, count)
        if _write(r, array.a[0], level + 1):
            return LEFT
        r.stepped -= 1
        count += 1
        _skip_space(r)
        if r.at >= r.end:
            return LEFT
        if r.at[0] == 93:
            r.at += 1
            break
        if _take(r, 44):
            return LEFT
    if count > r.most_items:
        return LEFT
    return _insert_long(r, place, 1, count) or _put(r, 0)


cdef inline int _write_name(
    Run *r,
    int node,
    uint32_t own,
    KnownName *known,
    const uint8_t *start,
    Py_ssize_t size,
    int32_t **follows,
    int others,
) noexcept nogil:
    """Write the name of an entry, which was passed by, and go down to the entry.

    `known` says which name it is, if that was guessed. `follows` says where it stands which comes next; there are
    `others` before the first name.
    """
    cdef int number
    if known != NULL:
        if _see(r, known, own):
            return LEFT
    else:
        if _meet(r, node, own, start, size, &number):
            return LEFT
        if number == 0:
            _step(r, start, size, 0)
            return _put_long(r, size) or _put_few(r, start, size, r.end)
        follows[0][0] = others + number
        known = _known_at(r.known, number)
    follows[0] = &known.next
    start = known.label + known.label_size
    _step(r, start + 1, known.size, 0)
    return _put_few(r, start, known.size + 1, start + LONGEST)


cdef int _write_entries(Run *r, const Instruction *map, int level, int64_t *count) noexcept nogil:
    """Write the entries of a map, of which there is one at least."""
    cdef const uint8_t *start = NULL
    cdef Py_ssize_t size = 0
    cdef int node = <int>(map - r.code), left = OK
    cdef int32_t *follows = r.follows + r.count + node
    cdef KnownName *known
    cdef uint32_t own
    cdef bint ended = False, is_quick = _is_scalar_type(r, r.code + map.a[0])
    r.object += 1
    own = r.object
    while not ended:
        if is_quick:
            left = _write_quick_entries(r, node, own, &follows, count, &known)
        else:
            left = OK
            known = _take_guessed(r, node, follows[0])
        if left:
            if left == ENDED:
                break
            return LEFT
        _skip_space(r)
        if known != NULL:
            start, size = known.label + known.label_size + 1, known.size
        elif _take_name(r, &start, &size):
            return LEFT
        if _write_name(r, node, own, known, start, size, &follows, 0) or _write(r, map.a[0], level + 1):
            return LEFT
        r.stepped -= 1
        count[0] += 1
        if _is_last_member(r, &ended):
            return LEFT
    return OK


cdef int _write_map(Run *r, const Instruction *map, int level) noexcept nogil:
    cdef Py_ssize_t place = r.size
    cdef int64_t count = 0
    if r.at[0] != 123 or level > r.most_levels or _put(r, 0):
        return LEFT
    r.at += 1
    _skip_space(r)
    if r.at < r.end and r.at[0] == 125:
        r.at += 1
        return OK
    if _write_entries(r, map, level, &count):
        return LEFT
    if count > r.most_items:
        return LEFT
    return _insert_long(r, place, 1, count) or _put(r, 0)


cdef inline int _null_of(const Instruction *type) noexcept nogil:
    """Return the index of the branch that is null, -1 without one."""
    if type.kind == OPTIONAL:
        return type.a[2]
    if type.kind == VARIANT or type.kind == COLUMN:
        return type.a[0]
    return -1


cdef int _leave_out(Run *r, Cursor *c, int start, int stop) noexcept nogil:
    """Write null for the members from one to another, which have not come yet."""
    cdef const Member *first = r.members + c.record.a[0]
    cdef Slice *slices = r.slices + c.base
    cdef int i, null
    if _reserve(r, stop - start):
        return LEFT
    for i in range(start, stop):
        slices[i].start = r.size
        slices[i].state = LEFT_OUT
        if first[i].missing != ABSENT:
            c.gaps = c.gaps or first[i].missing <= REQUIRED
        if first[i].missing <= NULL_:
            null = _null_of(r.code + first[i].node)
            if null < 0:
                return LEFT
            r.out[r.size] = <uint8_t>(null << 1)
            r.size += 1
        slices[i].stop = r.size
    return OK


cdef int _push_slice(Run *r, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t room
    cdef Slice *slices
    if r.slices_room - r.depth < count:
        room = r.slices_room * 2 + count
        slices = <Slice *>realloc(r.slices, room * sizeof(Slice))
        if slices == NULL:
            return LEFT
        r.slices = slices
        r.slices_room = room
    r.depth += count
    return OK


# The members of a record, in the order of its fields.

cdef int _find_member(Run *r, const Instruction *record, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    cdef int i
    cdef const Member *member = r.members + record.a[0]
    for i in range(record.a[1]):
        if member.size == size + 3 and memcmp(r.texts + member.label + 1, start, size) == 0:
            return i
        member += 1
    return -1


cdef inline int _is_last_member(Run *r, bint *ended) noexcept nogil:
    _skip_space(r)
    if r.at >= r.end:
        return LEFT
    ended[0] = r.at[0] == 125
    if not ended[0] and r.at[0] != 44:
        return LEFT
    r.at += 1
    return OK


cdef int _note_unknown(Run *r, Cursor *c) noexcept nogil:
    """Note a member that the schema does not name; slices behind those of the fields say which notes it has."""
    cdef Py_ssize_t place = r.size
    cdef int number
    if c.known == NULL:
        if _meet(r, c.others, c.own, c.name, c.size, &number):
            return LEFT
        if number:
            c.follows[0] = c.record.a[1] + number
            c.known = _known_at(r.known, number)
    elif _see(r, c.known, c.own):
        return LEFT
    if c.known != NULL:
        c.follows = &c.known.next
    if r.depth == c.base + c.record.a[1] or r.slices[r.depth - 1].last_note != r.noted:
        if _push_slice(r, 1):
            return LEFT
        r.slices[r.depth - 1].start = r.slices[r.depth - 1].stop = place
        r.slices[r.depth - 1].first_note = r.noted
    _step(r, c.name, c.size, 0)
    if _copy_json(r, c.level + 1) or _note(r, r.out + place, r.size - place):
        return LEFT
    r.slices[r.depth - 1].last_note = r.noted
    r.stepped -= 1
    r.size = place
    return OK


cdef int _note_text(Run *r) noexcept nogil:
    """Note a string that stands in place of an object."""
    cdef Py_ssize_t place = r.size
    if _copy_string(r) or _note(r, r.out + place, r.size - place):
        return LEFT
    r.size = place
    return OK


cdef int _write_rest(Run *r, Cursor *c) noexcept nogil:
    """Write a member that has no field as an entry of the rest map, from the name on that `_write_name` wrote."""
    cdef Py_ssize_t last = r.depth - 1
    if _write(r, r.code[c.others].a[0], c.level + 1):
        return LEFT
    r.stepped -= 1
    if r.depth == c.base + c.record.a[1] or r.slices[last].stop != c.place or r.slices[last].last_note != c.noted:
        if _push_slice(r, 1):
            return LEFT
        last += 1
        r.slices[last].start = c.place
        r.slices[last].first_note = c.noted
    r.slices[last].stop = r.size
    r.slices[last].last_note = r.noted
    return OK


cdef int _write_unnamed(Run *r, Cursor *c) noexcept nogil:
    """Write a member that has no field."""
    c.unnamed += 1
    if c.record.a[3] and c.size == 5 and memcmp(c.name, b"value", 5) == 0:
        _skip_space(r)
        if r.at < r.end and r.at[0] == 123:
            # The value of a Kafka record, whose other members stand together in the extras.
            return LEFT
    if not c.has_rest:
        return _note_unknown(r, c)
    c.place, c.noted = r.size, r.noted
    return _write_name(r, c.others, c.own, c.known, c.name, c.size, &c.follows, c.record.a[1]) or _write_rest(r, c)


cdef inline int _take_member(Run *r, Cursor *c, int *index) noexcept nogil:
    """Pass the name of the next member by, and give the member's index, -1 if it has no field."""
    cdef int i = c.follows[0]
    cdef const Member *member = r.members + c.record.a[0] + i
    _skip_space(r)
    index[0] = i
    c.known = NULL
    if i >= c.record.a[1]:
        c.known = _take_guessed(r, c.others, i - c.record.a[1])
        if c.known != NULL:
            c.name, c.size = c.known.label + c.known.label_size + 1, c.known.size
            index[0] = -1
            return OK
    elif member.size and cdcavro_begins(r.at, r.end, r.texts + member.label, member.size):
        r.at += member.size
        c.follows = r.follows + c.record.a[0] + i
        return OK
    if _take_name(r, &c.name, &c.size):
        return LEFT
    i = _find_member(r, c.record, c.name, c.size)
    if i >= 0:
        c.follows[0] = i
        c.follows = r.follows + c.record.a[0] + i
    index[0] = i
    return OK


cdef inline int _write_member(Run *r, Cursor *c, int i) noexcept nogil:
    """Write the value of a member, which was begun with."""
    cdef const Member *member = r.members + c.record.a[0] + i
    cdef const Instruction *type = r.code + member.node
    cdef Slice *slice
    cdef Py_ssize_t place, noted = r.noted
    cdef int null
    _skip_space(r)
    if r.at >= r.end:
        return LEFT
    place = r.size
    _step_to(r, member)
    if r.at[0] == 110:
        null = _null_of(type)
        if member.missing > NULL_ or null < 0 or _take_word(r, b"null", 4) or _put(r, null << 1):
            return LEFT
        if member.missing == ABSENT and _note(r, <const uint8_t *>b"null", 4):
            return LEFT
    elif type.kind == OPTIONAL and type.a[3] and r.at[0] == 34:
        if _note_text(r) or _put(r, type.a[2] << 1):
            return LEFT
    elif _write(r, member.node, c.level + 1):
        return LEFT
    r.stepped -= 1
    slice = r.slices + c.base + i
    slice.state, slice.start, slice.stop, slice.first_note, slice.last_note = WRITTEN, place, r.size, noted, r.noted
    return OK


cdef int _write_members(Run *r, Cursor *c) noexcept nogil:
    """Write the members of a record as they come."""
    cdef int i, left
    cdef bint ended = False
    while not ended:
        i = c.follows[0]
        if i < c.record.a[1] and not _is_scalar_type(r, r.code + r.members[c.record.a[0] + i].node):
            i = -2
        else:
            left = _write_quick_members(r, c, &i)
            if left:
                return OK if left == ENDED else LEFT
        if i == -1:
            c.name, c.size = c.known.label + c.known.label_size + 1, c.known.size
        elif i == -2 and (_take_member(r, c, &i) or (i >= 0 and _place(r, c, i))):
            return LEFT
        if _write_unnamed(r, c) if i < 0 else _write_member(r, c, i):
            return LEFT
        if _is_last_member(r, &ended):
            return LEFT
    return OK


cdef int _append_slice(Run *r, Slice *slice) noexcept nogil:
    cdef Py_ssize_t size = slice.stop - slice.start
    if _reserve(r, size):
        return LEFT
    cdcavro_copy(r.out + r.size, r.out + slice.start, size, r.out + r.size)
    r.size += size
    return OK


cdef int _assemble(Run *r, const Instruction *record, Py_ssize_t begin, Py_ssize_t base, int64_t rest) noexcept nogil:
    """Bring the members of a record, which were written from `begin` on, into their order."""
    cdef Py_ssize_t end = r.size, i
    for i in range(base, base + record.a[1]):
        if record.a[0] + i - base != record.a[2]:
            if _append_slice(r, r.slices + i):
                return LEFT
        elif rest and _put_long(r, rest):
            return LEFT
    for i in range(base + record.a[1], r.depth):
        if _append_slice(r, r.slices + i):
            return LEFT
    if record.a[2] >= 0 and _put(r, 0):
        return LEFT
    memmove(r.out + begin, r.out + end, r.size - end)
    r.size = begin + r.size - end
    return OK


cdef int _write_head(Run *r, Cursor *c, int *payload) noexcept nogil:
    """Write the known schema of a record, of which nothing is written but a number of entries that no map has.

    Give the member behind it, its payload.
    """
    cdef int schema = _find_member(r, c.record, <const uint8_t *>b"schema", 6)
    cdef const Instruction *type
    cdef Slice *slice
    payload[0] = _find_member(r, c.record, <const uint8_t *>b"payload", 7)
    if c.shuffled or not 0 <= schema < payload[0] or _place(r, c, schema):
        return LEFT
    type = r.code + r.members[c.record.a[0] + schema].node
    slice = r.slices + c.base + schema
    slice.state, slice.start, slice.first_note, slice.last_note = WRITTEN, r.size, r.noted, r.noted
    if type.kind != OPTIONAL or _put(r, type.a[1] << 1) or _put_long(r, OF_HEAD):
        return LEFT
    slice.stop = r.size
    return OK


cdef inline int _open_record(Run *r, Cursor *c, int node, int level) noexcept nogil:
    """Begin with the members of a record."""
    cdef const Instruction *record = r.code + node
    if level > r.most_levels or _push_slice(r, record.a[1]):
        return LEFT
    r.object += 1
    c.begin, c.first_note = r.size, r.noted
    c.record, c.level, c.own = record, level, r.object
    c.base, c.follows = r.depth - record.a[1], r.follows + r.count + node
    c.has_rest = record.a[2] >= 0
    c.others = r.members[record.a[2]].node if c.has_rest else node
    c.last, c.shuffled, c.gaps, c.unnamed = -1, c.has_rest, False, 0
    memset(r.slices + c.base, 0, record.a[1] * sizeof(Slice))
    return OK


cdef inline int _close_record(Run *r, Cursor *c) noexcept nogil:
    """Write null for the members that did not come, and bring all into their order."""
    cdef const Instruction *record = c.record
    cdef bint notes
    if c.last + 1 < record.a[1] and _leave_out(r, c, c.last + 1, record.a[1]):
        return LEFT
    notes = r.noted != c.first_note
    if (c.gaps and _check_gaps(r, c, &notes)) or (notes and _order_notes(r, record, c.base, c.first_note)):
        return LEFT
    if c.unnamed > r.most_items or (c.shuffled and _assemble(r, record, c.begin, c.base, c.unnamed)):
        return LEFT
    r.depth = c.base
    return OK


cdef int _write_record(Run *r, int node, int level) noexcept nogil:
    cdef Cursor c
    cdef bint is_brief = r.has_head and r.at[0] == MARK
    cdef int payload
    if (r.at[0] != 123 and not is_brief) or _open_record(r, &c, node, level):
        return LEFT
    r.at += 1
    _skip_space(r)
    if is_brief:
        if _write_head(r, &c, &payload) or _place(r, &c, payload) or _write_member(r, &c, payload):
            return LEFT
    elif r.at < r.end and r.at[0] == 125:
        r.at += 1
    elif _write_members(r, &c):
        return LEFT
    return _close_record(r, &c)


cdef int _check_gaps(Run *r, Cursor *c, bint *notes) noexcept nogil:
    """Stop if a member was left out that has to be there, and say whether there is one that has to be noted."""
    cdef const Member *member = r.members + c.record.a[0]
    cdef int i
    for i in range(c.record.a[1]):
        if r.slices[c.base + i].state == LEFT_OUT:
            if member[i].missing == REQUIRED:
                return LEFT
            if member[i].missing == NULL_:
                notes[0] = True
    return OK


cdef int _write_variant(Run *r, const Instruction *variant) noexcept nogil:
    cdef uint8_t c = r.at[0]
    if c == 34:
        return LEFT if variant.a[3] < 0 else _put(r, variant.a[3] << 1) or _write_string(r)
    if c == 116 or c == 102:
        return LEFT if variant.a[1] < 0 else _put(r, variant.a[1] << 1) or _write_boolean(r)
    return LEFT if variant.a[2] < 0 or c == 34 else _put(r, variant.a[2] << 1) or _write_integer(r, variant.a[4])


cdef int _write_boolean(Run *r) noexcept nogil:
    if r.at[0] == 116:
        return _take_word(r, b"true", 4) or _put(r, 1)
    return _take_word(r, b"false", 5) or _put(r, 0)


cdef int _write(Run *r, int node, int level) noexcept nogil:
    """Write one value by the instruction of its type; `level` is how deep it would nest."""
    cdef const Instruction *type = r.code + node
    _skip_space(r)
    if r.at >= r.end:
        return LEFT
    if type.kind == OPTIONAL:
        if r.at[0] == 110:
            return _take_word(r, b"null", 4) or _put(r, type.a[2] << 1)
        if _put(r, type.a[1] << 1):
            return LEFT
        node = type.a[0]
        type = r.code + node
    if type.kind == COLUMN:
        return _write_column(r, type, level)
    if type.kind == STRING:
        return _write_plain(r)
    if type.kind == LONG or type.kind == INT:
        return _write_integer(r, type.kind == INT)
    if type.kind == ENUM:
        return _write_enum(r, type)
    if type.kind == MAP:
        return _write_map(r, type, level)
    if type.kind == ARRAY:
        return _write_array(r, type, level)
    if type.kind == RECORD:
        return _write_record(r, node, level)
    if type.kind == BOOLEAN:
        return _write_boolean(r)
    if type.kind == VARIANT:
        if r.at[0] == 110:
            return _take_word(r, b"null", 4) or _put(r, type.a[0] << 1)
        return _write_variant(r, type)
    return LEFT


# A whole message, which may stand in a Kafka record.

cdef extern from *:
    """
    /* As Kafka's clients and Spark's source of Kafka call them. */
    static int cdcavro_is_of_record(const uint8_t *name, ptrdiff_t size) {
        switch (size) {
            case 3: return memcmp(name, "key", 3) == 0;
            case 5: return memcmp(name, "topic", 5) == 0;
            case 6: return memcmp(name, "offset", 6) == 0;
            case 7: return memcmp(name, "headers", 7) == 0;
            case 9: return memcmp(name, "partition", 9) == 0 || memcmp(name, "timestamp", 9) == 0;
            case 13: return memcmp(name, "timestampType", 13) == 0;
            case 14: return memcmp(name, "timestamp_type", 14) == 0;
        }
        return 0;
    }

    /* By its first letter. */
    static inline int cdcavro_may_be_of_record(uint8_t c) {
        return c == 't' || c == 'p' || c == 'o' || c == 'k' || c == 'h' || c == 'v' || c == 92;
    }
    """
    bint cdcavro_may_be_of_record(uint8_t c) noexcept nogil
    bint cdcavro_is_of_record(const uint8_t *name, Py_ssize_t size) noexcept nogil


cdef inline bint _is_value(const uint8_t *name, Py_ssize_t size) noexcept nogil:
    return size == 5 and memcmp(name, b"value", 5) == 0


cdef int _write_beside(Run *r, uint32_t own, int root, Py_ssize_t *start, Py_ssize_t *stop) noexcept nogil:
    """Write the next member of a Kafka record: its value as a payload, and give where that stands; others as text."""
    cdef const uint8_t *name
    cdef Py_ssize_t size
    if _take_name(r, &name, &size) or _add_name(r, own, name, size):
        return LEFT
    if _is_value(name, size):
        _skip_space(r)
        start[0] = r.size
        if r.at >= r.end or _write_record(r, root, 2):
            return LEFT
        stop[0] = r.size
        return OK
    if not cdcavro_is_of_record(name, size) or _put(r, 44) or _put_quoted(r, name, name + size, name + size):
        return LEFT
    return _put(r, 58) or _copy_json(r, 2)


cdef int _write_record_of_kafka(Run *r, int root) noexcept nogil:
    """Write the message in a Kafka record; its other members are the first note."""
    cdef Py_ssize_t begin = r.size, start = 0, stop = 0
    cdef bint ended = False
    cdef Note *note
    if _note(r, NULL, 0) or _take(r, 123):
        return LEFT
    r.pointed += 5  # the key of that note
    r.object += 1
    cdef uint32_t own = r.object
    while not ended:
        if _write_beside(r, own, root, &start, &stop) or _is_last_member(r, &ended):
            return LEFT
    if stop == 0:
        return LEFT
    note = r.notes
    note.start = r.said_size
    if _say(r, <const uint8_t *>b"kafka{", 6):
        return LEFT
    note.stop = note.start + 5
    # Each of the others begins with a comma.
    if start > begin:
        if _say(r, r.out + begin + 1, start - begin - 1) or (r.size > stop and _say(r, <const uint8_t *>b",", 1)):
            return LEFT
    if r.size > stop and _say(r, r.out + stop + 1, r.size - stop - 1):
        return LEFT
    if _say(r, <const uint8_t *>b"}", 1):
        return LEFT
    note.size = r.said_size - note.stop
    memmove(r.out + begin, r.out + start, stop - start)
    r.size = begin + stop - start
    return OK


cdef bint _looks_like_record_of_kafka(Run *r) noexcept nogil:
    """Return whether a message begins with a member of a Kafka record."""
    cdef const uint8_t *start
    cdef Py_ssize_t size
    cdef const uint8_t *at = r.at
    cdef bint looks
    if r.end - at > 2 and at[1] == 34 and not cdcavro_may_be_of_record(at[2]):
        return False
    looks = not _take(r, 123) and not _take_name(r, &start, &size)
    looks = looks and (_is_value(start, size) or cdcavro_is_of_record(start, size))
    r.at = at
    return looks


cdef int _write_message(Run *r, int root, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Append the payload of a message."""
    cdef Py_ssize_t begin = r.size
    if size + r.head_size > r.most_size or not cdcavro_is_utf8(start, start + size):
        return LEFT
    _begin(r, start, size)
    r.said_size = r.pointed = 0
    if not r.code[root].a[3] or not _looks_like_record_of_kafka(r) or _write_record_of_kafka(r, root):
        # What looks like one may be a message all the same.
        _begin(r, start, size)
        r.size = begin
        r.said_size = r.pointed = 0
        if _write(r, root, 1):
            return LEFT
    _skip_space(r)
    return LEFT if r.at != r.end else _end_message(r, begin)


cdef inline int _end_message(Run *r, Py_ssize_t begin) noexcept nogil:
    """Write the extras of a message whose payload begins there."""
    if _write_extras(r):
        return LEFT
    # The exact way counts only what pointers repeat.
    return LEFT if r.pointed > FREE and r.pointed - FREE > PROPORTION * (r.size - begin - r.pointed) else OK
