# Payload to text: values, records, and a whole message, around which there may be a Kafka record.


# Payload to text, the quick way: scalars as they mostly are, with pointers kept in variables.

cdef enum:
    ENTRY = 160  # bytes of text that a value takes at the most here, and copies behind it


cdef inline const uint8_t *_show_text(Run *r, const uint8_t *at, uint8_t **out) noexcept nogil:
    """Put out a short string that needs no escapes."""
    cdef const uint8_t *stop
    cdef uint8_t *to = out[0]
    cdef uint32_t not_ascii = 0
    if at >= r.end or at[0] & 0x81 or at[0] >> 1 > r.end - at - 1:
        return NULL
    stop = at + 1 + (at[0] >> 1)
    at += 1
    to[0] = 34
    if cdcavro_copy_plain(to + 1, at, stop, r.end, &not_ascii) != stop:
        return NULL
    if not_ascii and not cdcavro_is_utf8(at, stop):
        return NULL
    to += stop - at + 1
    to[0] = 34
    out[0] = to + 1
    return stop


cdef inline const uint8_t *_show_long(Run *r, const uint8_t *at, bint is_int, uint8_t **out) noexcept nogil:
    """Put out an integer of up to 8 bytes."""
    cdef uint64_t read = 0, value
    cdef int shift = 0
    cdef uint8_t text[48]
    cdef uint8_t *start
    if r.end - at < 9:
        return NULL
    while at[0] >= 0x80:
        read |= <uint64_t>(at[0] & 0x7F) << shift
        at += 1
        shift += 7
        if shift > 49:
            return NULL
    if at[0] == 0 and shift:
        return NULL
    read |= <uint64_t>at[0] << shift
    value = (read >> 1) + (read & 1)
    if is_int and value > 0x7FFFFFFF:
        return NULL
    start = cdcavro_digits(text + 24, value)
    start -= 1
    start[0] = 45
    start += not read & 1
    memcpy(out[0], start, 24)
    out[0] += text + 24 - start
    return at + 1


cdef inline const uint8_t *_show_symbol(
    Run *r, const Instruction *symbols, const uint8_t *at, uint8_t **out
) noexcept nogil:
    cdef const int32_t *symbol
    if at >= r.end or at[0] & 0x81 or at[0] >> 1 >= symbols.a[1]:
        return NULL
    symbol = r.symbols + symbols.a[0] + at[0]
    if symbol[1] > SLACK:
        return NULL
    memcpy(out[0], r.texts + symbol[0], SLACK)
    out[0] += symbol[1]
    return at + 1


cdef inline const uint8_t *_show_value(
    Run *r, const Instruction *type, const uint8_t *at, uint8_t **out
) noexcept nogil:
    """Put out a scalar of up to ENTRY bytes, and return where it ends; NULL for anything else and for faults."""
    cdef int branch = -1
    if type.kind == OPTIONAL or type.kind == COLUMN:
        if at >= r.end:
            return NULL
        branch = at[0]
        at += 1
        if branch == (type.a[2] if type.kind == OPTIONAL else type.a[0]) << 1:
            memcpy(out[0], b"null", 4)
            out[0] += 4
            return at
    if type.kind == OPTIONAL:
        if branch != type.a[1] << 1:
            return NULL
        type = r.code + type.a[0]
        if type.kind == COLUMN:
            return NULL
    if type.kind == COLUMN:
        if branch == type.a[4] << 1:
            return _show_text(r, at, out)
        return _show_long(r, at, False, out) if branch == type.a[2] << 1 else NULL
    if type.kind == STRING:
        return _show_text(r, at, out)
    if type.kind == LONG or type.kind == INT:
        return _show_long(r, at, type.kind == INT, out)
    return _show_symbol(r, type, at, out) if type.kind == ENUM else NULL


cdef int _render_quick_entries(
    Run *r, int node, uint32_t own, int32_t **follows, int64_t *count, bint *first
) noexcept nogil:
    """Put out the entries of a map that are the expected ones, as far as they are plain."""
    cdef const Instruction *type = r.code + r.code[node].a[0]
    cdef const uint8_t *at = r.at
    cdef const uint8_t *datum
    cdef uint64_t stamp = _stamp(r, own)
    cdef uint8_t *out = r.out + r.size
    cdef uint8_t *written = out
    cdef KnownName *known
    while count[0]:
        known = _guess(r, node, follows[0][0])
        if known == NULL or known.stamp == stamp:
            break
        if r.room - (written - r.out) < known.label_size + ENTRY:
            r.size = written - r.out
            if _reserve(r, known.label_size + ENTRY):
                return LEFT
            written = r.out + r.size
        datum = known.label + known.label_size
        if not cdcavro_begins(at, r.end, datum, known.size + 1):
            break
        out = written
        if not first[0]:
            out[0] = 44
            out += 1
        cdcavro_copy(out, known.label, known.label_size, datum + LONGEST)
        out += known.label_size
        datum = _show_value(r, type, at + known.size + 1, &out)
        if datum == NULL:
            break
        at, written = datum, out
        first[0] = False
        known.stamp = stamp
        follows[0] = &known.next
        count[0] -= 1
    r.at, r.size = at, written - r.out
    return OK


cdef inline int _render_member(Run *r, const Member *member, bint first, int level) noexcept nogil:
    """Put out a member that has no patch."""
    cdef uint8_t *out
    cdef const uint8_t *label = r.texts + member.label
    cdef const uint8_t *after
    if _reserve(r, member.size + ENTRY):
        return LEFT
    out = r.out + r.size
    if not first:
        out[0] = 44
        out += 1
    cdcavro_copy(out, label, member.size, label + member.size + SLACK)
    out += member.size
    r.size = out - r.out
    after = _show_value(r, r.code + member.node, r.at, &out)
    if after == NULL:
        return _render(r, member.node, level)
    r.at, r.size = after, out - r.out
    return OK


# Values, whatever they are like.

cdef int _render_number(Run *r) noexcept nogil:
    cdef const uint8_t *start
    cdef const uint8_t *number
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef Py_ssize_t size
    if _read_string(r, &start, &size):
        return LEFT
    at, end = r.at, r.end
    r.at, r.end = start, at
    if _scan_number(r, &number) == 0 or r.at != at:
        return LEFT
    r.end = end
    return _put_few(r, start, size, end)


cdef int _render_json(Run *r, int level) noexcept nogil:
    """Put out the text of an object or array in its compact form."""
    cdef const uint8_t *start
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef Py_ssize_t size
    if _read_text(r, &start, &size):
        return LEFT
    at, end = r.at, r.end
    r.at, r.end = start, at
    _skip_space(r)
    if r.at >= r.end or (r.at[0] != 123 and r.at[0] != 91) or _copy_json(r, level):
        return LEFT
    _skip_space(r)
    if r.at != r.end:
        return LEFT
    r.end = end
    return OK


cdef int _render_column(Run *r, const Instruction *column, int level) noexcept nogil:
    cdef int index
    cdef int64_t whole
    cdef double value
    if _read_index(r, &index):
        return LEFT
    if index == column.a[4]:
        return _render_string(r)
    if index == column.a[0]:
        return _put_bytes(r, <const uint8_t *>b"null", 4)
    if index == column.a[2]:
        return _read_long(r, &whole) or _render_digits(r, whole)
    if index == column.a[3]:
        if r.end - r.at < 8:
            return LEFT
        memcpy(&value, r.at, 8)
        r.at += 8
        return _render_double(r, value)
    if index == column.a[5]:
        return _render_number(r)
    if index == column.a[1]:
        return _render_boolean(r)
    return _render_json(r, level) if index == column.a[6] else LEFT


cdef inline int _render_string(Run *r) noexcept nogil:
    cdef const uint8_t *start
    cdef Py_ssize_t size
    return _read_string(r, &start, &size) or _put_quoted(r, start, start + size, r.end)


cdef inline int _render_boolean(Run *r) noexcept nogil:
    if _skip_boolean(r):
        return LEFT
    return _put_bytes(r, <const uint8_t *>b"true", 4) if (r.at - 1)[0] else _put_bytes(r, <const uint8_t *>b"false", 5)


cdef extern from *:
    """
    /* Writes the standard base64 text of bytes (RFC 4648, section 4), and returns its length. */
    static inline ptrdiff_t cdcavro_to_base64(uint8_t *to, const uint8_t *at, ptrdiff_t size) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        uint8_t *out = to;
        for (; size > 0; at += 3, size -= 3, out += 4) {
            uint32_t word = (uint32_t)at[0] << 16 | (size > 1 ? at[1] << 8 : 0) | (size > 2 ? at[2] : 0);
            out[0] = digits[word >> 18];
            out[1] = digits[word >> 12 & 63];
            out[2] = size > 1 ? digits[word >> 6 & 63] : '=';
            out[3] = size > 2 ? digits[word & 63] : '=';
        }
        return out - to;
    }
    """
    Py_ssize_t cdcavro_to_base64(uint8_t *to, const uint8_t *at, Py_ssize_t size) noexcept nogil


cdef int _render_bytes(Run *r, Py_ssize_t size) noexcept nogil:
    """Put out bytes in base64, as many as they say themselves if `size` is negative."""
    cdef const uint8_t *start = r.at
    if size < 0:
        if _read_string(r, &start, &size):
            return LEFT
    elif _skip_bytes(r, <int>size):
        return LEFT
    if _reserve(r, (size + 2) // 3 * 4 + 2):
        return LEFT
    r.out[r.size] = 34
    size = cdcavro_to_base64(r.out + r.size + 1, start, size)
    r.out[r.size + size + 1] = 34
    r.size += size + 2
    return OK


cdef int _render_float(Run *r, bint is_single) noexcept nogil:
    """Put out a number of single or double precision as Java does."""
    cdef float single
    cdef double value
    cdef const uint8_t *start = r.at
    if _skip_bytes(r, 4 if is_single else 8):
        return LEFT
    if not is_single:
        memcpy(&value, start, 8)
        return _render_java(r, value)
    memcpy(&single, start, 4)
    if not (0.0001 <= single < 1e7 or 0.0001 <= -single < 1e7 or single == 0):
        return LEFT
    return _render_java(r, cdcavro_of_single(single))


cdef int _render_array(Run *r, const Instruction *array, int level) noexcept nogil:
    cdef int64_t count, i, outer = r.index
    if _put(r, 91) or _read_long(r, &count) or count < 0 or count > r.end - r.at or count > r.most_items:
        return LEFT
    if count:
        for i in range(count):
            r.index = i
            if (i and _put(r, 44)) or _render(r, array.a[0], level + 1):
                return LEFT
        r.index = outer
        if _read_end(r):
            return LEFT
    return _put(r, 93)


cdef inline int _render_name(
    Run *r, int node, uint32_t own, const Instruction *record, int32_t **follows
) noexcept nogil:
    """Put out the name of an entry as a member's; it may not be that of a field of the record around it."""
    cdef KnownName *known = _guess(r, node, follows[0][0])
    cdef const uint8_t *start
    cdef Py_ssize_t size
    cdef int number
    if known != NULL:
        start = known.label
        if cdcavro_begins(r.at, r.end, start + known.label_size, known.size + 1):
            r.at += known.size + 1
            follows[0] = &known.next
            return _see(r, known, own) or _put_few(r, start, known.label_size, start + LONGEST)
    if _read_text(r, &start, &size) or (record != NULL and _find_member(r, record, start, size) >= 0):
        return LEFT
    if _meet(r, node, own, start, size, &number):
        return LEFT
    if number:
        follows[0][0] = number
        follows[0] = &_known_at(r.known, number).next
    return _put_quoted(r, start, start + size, r.end) or _put(r, 58)


cdef int _render_entries(
    Run *r, const Instruction *map, const Instruction *record, int level, bint first
) noexcept nogil:
    """Put out the entries of a map as members."""
    cdef int64_t count
    cdef int node = <int>(map - r.code)
    cdef int32_t *follows = r.follows + r.count + node
    cdef uint32_t own
    cdef bint is_quick = _is_scalar_type(r, r.code + map.a[0])
    r.object += 1
    own = r.object
    if _read_long(r, &count) or count < 0 or count > r.end - r.at or count > r.most_items:
        return LEFT
    if count == 0:
        return OK
    while count:
        if is_quick:
            if _render_quick_entries(r, node, own, &follows, &count, &first):
                return LEFT
            if count == 0:
                break
        if not first and _put(r, 44):
            return LEFT
        first = False
        if _render_name(r, node, own, record, &follows) or _render(r, map.a[0], level):
            return LEFT
        count -= 1
    return _read_end(r)


cdef int _render(Run *r, int node, int level) noexcept nogil:
    """Put out one value by the instruction of its type."""
    cdef const Instruction *type = r.code + node
    cdef int64_t value
    cdef int index
    if type.kind == OPTIONAL:
        if _read_index(r, &index):
            return LEFT
        if index == type.a[2]:
            return _put_bytes(r, <const uint8_t *>b"null", 4)
        if index != type.a[1]:
            return LEFT
        node = type.a[0]
        type = r.code + node
    if type.kind == COLUMN:
        return _render_column(r, type, level)
    if type.kind == STRING:
        return _render_string(r)
    if type.kind == LONG or type.kind == INT:
        if _read_long(r, &value) or (type.kind == INT and not -(<int64_t>1 << 31) <= value < <int64_t>1 << 31):
            return LEFT
        return _render_digits(r, value)
    if type.kind == ENUM:
        if _read_long(r, &value) or not 0 <= value < type.a[1]:
            return LEFT
        index = type.a[0] + 2 * <int>value
        return _put_bytes(r, r.texts + r.symbols[index], r.symbols[index + 1])
    if type.kind == MAP:
        return _put(r, 123) or _render_entries(r, type, NULL, level + 1, True) or _put(r, 125)
    if type.kind == ARRAY:
        return _render_array(r, type, level)
    if type.kind == RECORD:
        return _render_record(r, node, level)
    if type.kind == BOOLEAN:
        return _render_boolean(r)
    if type.kind == VARIANT:
        return _render_variant(r, type)
    if type.kind == BYTES:
        return _render_bytes(r, type.a[0])
    return _render_float(r, type.kind == FLOAT) if type.kind == DOUBLE or type.kind == FLOAT else LEFT


cdef int _render_variant(Run *r, const Instruction *variant) noexcept nogil:
    cdef int index
    cdef int64_t value
    if _read_index(r, &index):
        return LEFT
    if index == variant.a[0]:
        return _put_bytes(r, <const uint8_t *>b"null", 4)
    if index == variant.a[2]:
        if _read_long(r, &value) or (variant.a[4] and not -(<int64_t>1 << 31) <= value < <int64_t>1 << 31):
            return LEFT
        return _render_digits(r, value)
    if index == variant.a[3]:
        return _render_string(r)
    return _render_boolean(r) if index == variant.a[1] else LEFT


# Records, and a whole message.

cdef inline Patch *_in_turn(Run *r, int i) noexcept nogil:
    """Return the patch of a member for this item of an array, NULL without one; they come in the order of the items."""
    cdef Patch *head = r.patches + r.patched[i] - 1
    cdef Patch *patch
    if head.applied != r.run:
        head.applied, head.turn = r.run, r.patched[i]
    if head.turn == 0:
        return NULL
    patch = r.patches + head.turn - 1
    if patch.index != r.index:
        return NULL
    head.turn = patch.next
    return patch


cdef int _render_patched(Run *r, int i, bint *first, int level) noexcept nogil:
    """Put out a member that has a patch, which takes the place of its value."""
    cdef const Member *member = r.members + i
    cdef Patch *patch = r.patches + r.patched[i] - 1
    cdef Py_ssize_t before = r.size, place
    if patch.index >= 0:
        patch = _in_turn(r, i)
    if patch == NULL:
        place = _render_member(r, member, first[0], level + 1)
        first[0] = False
        return <int>place
    if (not first[0] and _put(r, 44)) or _put_bytes(r, r.texts + member.label, member.size):
        return LEFT
    place = r.size
    if _render(r, member.node, level + 1):
        return LEFT
    if patch.stop == patch.end:
        r.size = before
        return OK
    r.size = place
    first[0] = False
    r.applied += 1
    patch.applied = r.run
    return _put_bytes(r, r.said + patch.stop, patch.end - patch.stop)


cdef int _render_record(Run *r, int node, int level) noexcept nogil:
    cdef const Instruction *record = r.code + node
    cdef const Member *member
    cdef Py_ssize_t before
    cdef int i, null
    cdef bint first = True
    if _put(r, 123):
        return LEFT
    for i in range(record.a[0], record.a[0] + record.a[1]):
        member = r.members + i
        if member.missing == ABSENT:
            null = _null_of(r.code + member.node)
            if null >= 0 and r.at < r.end and r.at[0] == null << 1:
                r.at += 1
                continue
        if member.missing == EXTRAS:
            if _pass_extras(r):
                return LEFT
        elif member.missing == REST:
            before = r.size
            if _render_entries(r, r.code + member.node, record, level + 1, first):
                return LEFT
            first = first and r.size == before
        elif r.patched[i] & ~INSIDE:
            if _render_patched(r, i, &first, level):
                return LEFT
        else:
            if _render_member(r, member, first, level + 1):
                return LEFT
            first = False
    if r.patched[r.count + node] and _append_patches(r, node, &first):
        return LEFT
    return _put(r, 125)


cdef int _say_around(Run *r, const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Say a Kafka record up to its value, of which `text` is the object of its other members."""
    cdef const uint8_t *at = r.at
    cdef const uint8_t *end = r.end
    cdef const uint8_t *name
    cdef Py_ssize_t place = r.size, length
    cdef bint ended
    if not r.code[r.root].a[3] or r.around_size:
        return LEFT
    r.at, r.end = text, text + size
    r.object += 1
    cdef uint32_t own = r.object
    if _take(r, 123) or _put(r, 123):
        return LEFT
    _skip_space(r)
    ended = r.at < r.end and r.at[0] == 125
    r.at += ended
    while not ended:
        if _take_name(r, &name, &length) or not cdcavro_is_of_record(name, length) or _add_name(r, own, name, length):
            return LEFT
        if _put_quoted(r, name, name + length, name + length) or _put(r, 58) or _copy_json(r, 2) or _put(r, 44):
            return LEFT
        if _is_last_member(r, &ended):
            return LEFT
    _skip_space(r)
    if r.at != r.end or _put_bytes(r, <const uint8_t *>b'"value":', 8):
        return LEFT
    r.at, r.end = at, end
    r.around, r.around_size = r.said_size, r.size - place
    r.size = place
    return _say(r, r.out + place, r.around_size)


cdef int _render_around(Run *r, int root) noexcept nogil:
    """Put out a message, and the Kafka record around it, if there is one."""
    if not r.around_size:
        return LEFT if r.is_brief and _put(r, MARK) else _render_record(r, root, 1)
    if _put_bytes(r, r.said + r.around, r.around_size) or _render_record(r, root, 1):
        return LEFT
    return _put(r, 125)


cdef int _render_message(Run *r, int root, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Append the text of the payload that begins here, and say where it ends (`r.at`)."""
    cdef Py_ssize_t begin = r.size
    cdef int attempt
    r.learned = NULL
    if r.vary:
        # The last payload had something in its extras, so look there first.
        _begin(r, start, size)
        r.items_left = size
        if _skip(r, root) or r.at >= r.end:
            return LEFT
        if not r.tail_size or r.end - r.at < r.tail_size or memcmp(r.at, r.tail, r.tail_size) != 0:
            if _learn_extras(r):
                _forget_extras(r)
                return LEFT
    for attempt in range(3):
        _begin(r, start, size)
        r.size = begin
        r.applied = 0
        r.again = False
        if _render_around(r, root) == OK:
            return OK if r.applied == r.patch_count else LEFT
        if not r.again:
            if r.patch_count == 0:
                break
            # What the last payload had in its extras, this one may not.
            _forget_extras(r)
    return LEFT
