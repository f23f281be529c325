# Records whose fields are in another order, and whole payloads.

cdef int _reserve_pieces(Transit *t, Py_ssize_t more) noexcept nogil:
    cdef Py_ssize_t room = t.piece_count + more
    cdef Piece *pieces
    if room > MOST_PIECES:
        return LEFT
    if room > t.pieces_room:
        room += room >> 1
        pieces = <Piece *>realloc(t.pieces, room * sizeof(Piece))
        if pieces == NULL:
            return LEFT
        t.pieces, t.pieces_room = pieces, room
    memset(t.pieces + t.piece_count, 0, more * sizeof(Piece))
    t.piece_count += more
    return OK


cdef int _turn_reordered(Transit *t, const Turn *turn, int level) noexcept nogil:
    """Turn a record whose fields come in another order: each is written as it comes, then put into its place."""
    cdef const Action *action = t.plan.actions + turn.a
    cdef const Action *end = action + turn.b
    cdef Py_ssize_t own = t.piece_count, origin, start, total = 0
    cdef Piece *piece
    cdef int i
    if level > t.plan.most_levels or _settle(t) or _reserve_pieces(t, turn.c):
        return LEFT
    origin = t.run.size
    while action < end:
        if action.kind == ON_DEFAULT:
            piece = t.pieces + own + action.place
            piece.start, piece.stop, piece.is_stated = action.first, action.first + action.size, True
            total += action.size
        else:
            start = t.run.size
            if _turn(t, action.first, level):
                return LEFT
            if action.kind == ON_SKIP:
                t.kept = t.run.at
            elif _settle(t):
                return LEFT
            else:
                piece = t.pieces + own + action.place
                piece.start, piece.stop = start, t.run.size
                total += piece.stop - piece.start
        action += 1
    if total > t.plan.most_bytes - (origin - t.first) or _reserve(&t.run, total):
        return LEFT
    t.piece_count = own
    if total == 0:
        t.run.size = origin
        return OK
    start = t.run.size
    for i in range(turn.c):
        piece = t.pieces + own + i
        memcpy(
            t.run.out + t.run.size,
            (t.plan.texts if piece.is_stated else t.run.out) + piece.start,
            piece.stop - piece.start,
        )
        t.run.size += piece.stop - piece.start
    memmove(t.run.out + origin, t.run.out + start, total)
    t.run.size = origin + total
    return OK


cdef inline void _set_out(Transit *t, const Plan *plan, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Begin with a payload."""
    t.run.at, t.run.end = start, start + size
    t.run.named = t.run.object = 0
    t.run.run += 1
    if t.run.run == 0:
        memset(t.run.names, 0, t.run.names_room * sizeof(Name))
        t.run.run = 1
    t.plan, t.start, t.kept = plan, start, start
    t.first = t.run.size
    t.items = t.weightless = t.piece_count = 0


cdef int _translate(Transit *t, const Plan *plan, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    """Check a payload, and append it as the reader's schema has it; nothing is appended if it is that already."""
    cdef Py_ssize_t before = t.run.size
    _set_out(t, plan, start, size)
    if _turn(t, plan.root, 0) or t.run.at != t.run.end or (not plan.is_same and _settle(t)):
        t.run.size = before
        return LEFT
    return OK
