# Payload to text: records, and a whole message, around which there may be a Kafka record.

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
        return _render_record(r, root, 1)
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
