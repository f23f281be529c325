# Cells of typed rows: the value of a column, as it stands in a payload of the wire schema, as the Avro of its type.

cdef enum:
    GONE, WHOLE, DOUBLE_, SINGLE, FLAG, DECIMAL, PLAIN, LABEL, INDEXED_LABEL, LABELS, MASKED_LABELS
    TEXT_OF_JSON, TEXT_OF_ANY, DIGITS, BASE64, LATIN1, BITS, COUNTED_BITS, REVERSED_BITS
    DAY_, CLOCK_, LOCAL_, SECONDS_, SECONDS_OR_LONG, MILLISECONDS, MICROSECONDS, PADDED, IN_ZONE, ISO, MILLIS_
    UNSCALED

cdef enum:
    MOST_UNSCALED = 16
    MOST_BITS = 8
    WIDEST = 65536  # bytes that a binary value is padded to

cdef int64_t FIRST_DAY = -719162
cdef int64_t LAST_DAY = 2932896
cdef int64_t DAY_MICROS = 86400000000
cdef int64_t EXACT = <int64_t>1 << 53

cdef struct Value:  # a token without its branch
    int kind
    int64_t whole
    double real
    const uint8_t *at
    const uint8_t *end

cdef enum:
    V_NULL, V_BOOLEAN, V_LONG, V_DOUBLE, V_STRING, V_NUMBER, V_TEXT


cdef int _value_of(Run *r, const Instruction *column, const Token *token, Value *value) noexcept nogil:
    """Take a token apart."""
    cdef int index, kind
    cdef int64_t size
    r.at, r.end = token.start, token.end
    if _read_index(r, &index):
        return LEFT
    value.kind = -1
    for kind in range(7):
        if index == column.a[kind]:
            value.kind = kind
    if value.kind == V_NULL:
        return OK
    if value.kind == V_BOOLEAN:
        if r.at >= r.end or r.at[0] > 1:
            return LEFT
        value.whole = r.at[0]
        return OK
    if value.kind == V_LONG:
        return _read_long(r, &value.whole)
    if value.kind == V_DOUBLE:
        if r.end - r.at < 8:
            return LEFT
        memcpy(&value.real, r.at, 8)
        return OK
    if value.kind < 0 or _read_long(r, &size) or size < 0 or size > r.end - r.at:
        return LEFT
    value.at = r.at
    value.end = r.at + size
    return OK


cdef int _number_in(Run *r, const Value *value) noexcept nogil:
    """Return the kind of number that a text is, 0 for any other text."""
    cdef const uint8_t *start
    cdef int kind
    r.at, r.end = value.at, value.end
    if r.at == r.end:
        return 0
    kind = _scan_number(r, &start)
    return kind if r.at == r.end else 0


cdef int _whole_of(Run *r, const Value *value, int64_t *whole) noexcept nogil:
    """Give the integer that a value is, or a text of one in canonical form."""
    if value.kind == V_LONG:
        whole[0] = value.whole
        return OK
    if value.kind != V_STRING or _number_in(r, value) != INTEGER:
        return LEFT
    return OK if _as_long(value.at, value.end, whole) else LEFT


cdef int _real_of(Run *r, const Value *value, int64_t exact, double *real) noexcept nogil:
    """Give the double of a number whose text is the shortest of it, or of an integer of at most `exact`."""
    cdef int64_t whole
    cdef int kind
    if value.kind == V_DOUBLE:
        real[0] = value.real
        return OK
    if value.kind == V_STRING:
        kind = _number_in(r, value)
        if kind == FRACTION:
            return OK if _as_double(value.at, value.end, real) else LEFT
    if _whole_of(r, value, &whole) or not -exact <= whole <= exact:
        return LEFT
    real[0] = <double>whole
    return OK


cdef int _as_single(double value, float *single) noexcept nogil:
    """Give the float of 32 bits of the same value as a double, or the one nearest to it if its text has six figures.

    Six figures always come back from the nearest float, and no shorter text does.
    """
    cdef double size = -value if value < 0 else value
    cdef int places
    if size != 0 and not 1.2e-38 < size < 3e38:
        return LEFT
    single[0] = <float>value
    if <double>single[0] == value:
        return OK
    if not 0.0001 <= size < TWO_52 or size == <double><int64_t>size:
        return LEFT
    return OK if cdcavro_shortest(size, &places) < 1000000 else LEFT


cdef inline int _put_some(Run *o, const Cell *cell) noexcept nogil:
    return _put(o, <uint8_t>cell.some)


cdef int _put_whole_cell(Run *o, const Cell *cell, int64_t value) noexcept nogil:
    return _put_some(o, cell) or _put_long(o, value)


cdef int _put_sized(Run *o, const Cell *cell, const uint8_t *at, Py_ssize_t size) noexcept nogil:
    return _put_some(o, cell) or _put_long(o, size) or _put_bytes(o, at, size)


cdef int _put_wide(Run *o, const Cell *cell, cdcavro_signed value, const int64_t *bounds) noexcept nogil:
    """Put out a decimal between two bounds of 128 bits."""
    cdef uint8_t raw[16]
    cdef int size
    if not cdcavro_within(value, cdcavro_joined(bounds[0], bounds[1]), cdcavro_joined(bounds[2], bounds[3])):
        return LEFT
    size = cdcavro_minimal(value, raw)
    return _put_sized(o, cell, raw, size)


cdef int _put_decimal(Run *r, Run *o, const Cell *cell, const Value *value, const int64_t *longs) noexcept nogil:
    """Put out a number as a decimal of a scale (b); it may be a text where c says so."""
    cdef cdcavro_signed wide
    cdef int kind
    cdef Py_ssize_t start = o.size
    if value.kind == V_LONG:
        wide = cdcavro_widened(value.whole)
        if not cdcavro_scaled(&wide, cell.b):
            return LEFT
        return _put_wide(o, cell, wide, longs + cell.a)
    if value.kind == V_DOUBLE:
        # Its shortest text has the digits that were sent; it stands behind what is written for a moment.
        if _render_double(o, value.real) or not cdcavro_unscaled(o.out + start, o.out + o.size, cell.b, &wide):
            return LEFT
        o.size = start
        return _put_wide(o, cell, wide, longs + cell.a)
    if value.kind != V_NUMBER and not (value.kind == V_STRING and cell.c):
        return LEFT
    kind = _number_in(r, value)
    if kind != INTEGER and kind != FRACTION:
        return LEFT
    if not cdcavro_unscaled(value.at, value.end, cell.b, &wide):
        return LEFT
    return _put_wide(o, cell, wide, longs + cell.a)


cdef int _put_unscaled(Run *o, const Cell *cell, const Value *value, const int64_t *longs) noexcept nogil:
    """Put out a decimal that came as base64 of its unscaled value, or as an integer where c says so."""
    cdef uint8_t raw[MOST_UNSCALED + 8]
    cdef cdcavro_signed wide
    if value.kind == V_LONG and cell.c and value.whole >= 0:
        return _put_wide(o, cell, cdcavro_widened(value.whole), longs + cell.a)
    if value.kind != V_STRING or value.end - value.at > 24:
        return LEFT
    if not cdcavro_of_bytes(raw, cdcavro_base64(value.at, value.end - value.at, raw), &wide):
        return LEFT
    return _put_wide(o, cell, wide, longs + cell.a)


cdef int _put_cell(Run *r, Run *o, const Cell *cell, const Instruction *column, const Token *token, const Facts *facts) noexcept nogil:
    """Put out the value of a column as the Avro of its type."""
    cdef Value value
    cdef int64_t whole
    cdef double real
    cdef float single
    if _value_of(r, column, token, &value):
        return LEFT
    if value.kind == V_NULL:
        return _put(o, <uint8_t>cell.null)
    if cell.op == WHOLE:
        if _whole_of(r, &value, &whole) or not facts.longs[cell.a] <= whole <= facts.longs[cell.a + 1]:
            return LEFT
        return _put_whole_cell(o, cell, whole)
    if cell.op == PLAIN or TEXT_OF_JSON <= cell.op <= DIGITS:
        return _put_cell_text(r, o, cell, &value)
    if cell.op == DECIMAL:
        return _put_decimal(r, o, cell, &value, facts.longs)
    if DAY_ <= cell.op <= MILLIS_:
        if _moment(r, cell, &value, facts, &whole):
            return LEFT
        return _put_whole_cell(o, cell, whole)
    if cell.op == DOUBLE_:
        if _real_of(r, &value, EXACT, &real):
            return LEFT
        return _put_some(o, cell) or _put_bytes(o, <const uint8_t *>&real, 8)
    if cell.op == SINGLE:
        if _real_of(r, &value, 1 << 24, &real) or _as_single(real, &single):
            return LEFT
        return _put_some(o, cell) or _put_bytes(o, <const uint8_t *>&single, 4)
    return _put_other_cell(r, o, cell, &value, facts)


cdef int _put_other_cell(Run *r, Run *o, const Cell *cell, const Value *value, const Facts *facts) noexcept nogil:
    cdef int64_t whole
    if cell.op == FLAG:
        if value.kind == V_BOOLEAN:
            whole = value.whole
        elif _whole_of(r, value, &whole) or not 0 <= whole <= 1:
            return LEFT
        return _put_some(o, cell) or _put(o, <uint8_t>whole)
    if cell.op == LABEL or cell.op == INDEXED_LABEL:
        return _put_label(r, o, cell, value, facts.symbols, facts.texts)
    if cell.op == LABELS or cell.op == MASKED_LABELS:
        return _put_labels(r, o, cell, value, facts.symbols, facts.texts)
    if cell.op == BASE64 or cell.op == LATIN1:
        return _put_binary(o, cell, value)
    if BITS <= cell.op <= REVERSED_BITS:
        return _put_bits(r, o, cell, value)
    if cell.op == UNSCALED:
        return _put_unscaled(o, cell, value, facts.longs)
    return LEFT
