# Cells of labels, bytes, bits and texts.

cdef int _put_label(Run *r, Run *o, const Cell *cell, const Value *value, const int32_t *symbols, const uint8_t *texts) noexcept nogil:
    """Put out the label of an ENUM, which came as a label, or as its index counted from 1."""
    cdef int64_t index
    cdef int i
    if value.kind != V_STRING:
        return LEFT
    if cell.op == INDEXED_LABEL:
        if _number_in(r, value) != INTEGER or not _as_long(value.at, value.end, &index) or not 0 <= index <= cell.b:
            return LEFT
        if index == 0:
            return _put_some(o, cell) or _put(o, 0)
        symbols += 2 * (cell.a + index - 1)
        return _put_sized(o, cell, texts + symbols[0], symbols[1])
    if cell.b == 0 or value.at == value.end:
        return _put_sized(o, cell, value.at, value.end - value.at)
    symbols += 2 * cell.a
    for i in range(cell.b):
        if symbols[1] == value.end - value.at and memcmp(texts + symbols[0], value.at, symbols[1]) == 0:
            return _put_sized(o, cell, value.at, value.end - value.at)
        symbols += 2
    return LEFT


cdef int _put_labels(Run *r, Run *o, const Cell *cell, const Value *value, const int32_t *symbols, const uint8_t *texts) noexcept nogil:
    """Put out the labels of a SET, which came as labels, or as a number with a bit for each."""
    cdef int64_t mask = 0
    cdef Py_ssize_t place, size = 0
    cdef int i
    cdef const int32_t *symbol = symbols + 2 * cell.a
    if value.kind != V_STRING:
        return LEFT
    if cell.op == LABELS:
        if cell.b == 0 or value.at == value.end:
            return _put_sized(o, cell, value.at, value.end - value.at)
        return _known_labels(cell, value, symbol, texts) or _put_sized(o, cell, value.at, value.end - value.at)
    if _number_in(r, value) != INTEGER or not _as_long(value.at, value.end, &mask):
        return LEFT
    if mask < 0 or cell.b > 62 or mask >> cell.b:
        return LEFT
    for i in range(cell.b):
        if mask >> i & 1:
            size += symbol[2 * i + 1] + ((mask & ((<int64_t>1 << i) - 1)) != 0)
    if _put_some(o, cell) or _put_long(o, size) or _reserve(o, size):
        return LEFT
    place = o.size
    for i in range(cell.b):
        if mask >> i & 1:
            if (mask & ((<int64_t>1 << i) - 1)) != 0 and _put(o, 44):
                return LEFT
            if _put_bytes(o, texts + symbol[2 * i], symbol[2 * i + 1]):
                return LEFT
    return OK if o.size - place == size else LEFT


cdef int _known_labels(const Cell *cell, const Value *value, const int32_t *symbols, const uint8_t *texts) noexcept nogil:
    """Return OK if each part between commas is a label."""
    cdef const uint8_t *at = value.at
    cdef const uint8_t *end
    cdef int i
    while True:
        end = at
        while end < value.end and end[0] != 44:
            end += 1
        for i in range(cell.b):
            if symbols[2 * i + 1] == end - at and memcmp(texts + symbols[2 * i], at, end - at) == 0:
                break
        else:
            return LEFT
        if end == value.end:
            return OK
        at = end + 1


cdef int _put_binary(Run *o, const Cell *cell, const Value *value) noexcept nogil:
    """Put out bytes that came as base64, or as ISO-8859-1 text, padded with zeros to a width (a)."""
    cdef Py_ssize_t size = value.end - value.at, place
    cdef int64_t count = 0
    cdef const uint8_t *at = value.at
    if value.kind != V_STRING or _put_some(o, cell) or _reserve(o, size + cell.a + VARINT):
        return LEFT
    place = o.size
    o.size += 5
    if cell.op == BASE64:
        count = cdcavro_base64(at, size, o.out + o.size)
    else:
        while at < value.end:
            if at[0] >= 0x80:
                # UTF-8 of a character up to U+00FF, which the text was checked to be.
                if at[0] > 0xC3 or value.end - at < 2:
                    return LEFT
                o.out[o.size + count] = <uint8_t>((at[0] & 3) << 6 | (at[1] & 0x3F))
                at += 2
            else:
                o.out[o.size + count] = at[0]
                at += 1
            count += 1
    if count < 0 or (cell.a and count > cell.a):
        return LEFT
    if cell.a:
        memset(o.out + o.size + count, 0, cell.a - count)
        count = cell.a
    o.size += count
    return _insert_long(o, place, 5, count)


cdef int _put_bits(Run *r, Run *o, const Cell *cell, const Value *value) noexcept nogil:
    """Put out the bytes of a BIT of a width (a): base64, in either order, or a number."""
    cdef uint8_t raw[16]
    cdef uint8_t turned[MOST_BITS]
    cdef int size = (cell.a + 7) // 8, i
    cdef int64_t count = 0
    cdef uint64_t bits = 0
    if value.kind == V_BOOLEAN and cell.op == REVERSED_BITS and cell.a == 1:
        bits = <uint64_t>value.whole
    elif value.kind == V_LONG and cell.op == BITS:
        if value.whole < 0:
            return LEFT
        bits = <uint64_t>value.whole
    elif value.kind == V_STRING and cell.op == COUNTED_BITS:
        if not cdcavro_counted(value.at, value.end, &count) or (value.at[0] == 48 and value.end - value.at > 1):
            return LEFT
        bits = <uint64_t>count
    elif value.kind == V_STRING and value.end - value.at <= 12:
        count = cdcavro_base64(value.at, value.end - value.at, raw)
        if not 1 <= count <= MOST_BITS or (cell.op == BITS and count != size) or count > size:
            return LEFT
        for i in range(count):
            bits = bits << 8 | raw[count - 1 - i if cell.op == REVERSED_BITS else i]
    else:
        return LEFT
    if cell.a < 64 and bits >> cell.a:
        return LEFT
    for i in range(size):
        turned[size - 1 - i] = <uint8_t>(bits >> (8 * i))
    return _put_sized(o, cell, turned, size)


cdef int _put_cell_text(Run *r, Run *o, const Cell *cell, const Value *value) noexcept nogil:
    """Put out a text, or the text of another scalar where the column takes it."""
    cdef Py_ssize_t place
    cdef int kind
    if value.kind == V_STRING:
        if cell.op == DIGITS:
            kind = _number_in(r, value)
            if kind == 0 or not cell.c:
                return LEFT
        if cell.op == PLAIN and cell.c and _has_byte(value, <uint8_t>cell.c):
            return LEFT
        return _put_sized(o, cell, value.at, value.end - value.at)
    if value.kind == V_TEXT and (cell.op == TEXT_OF_JSON or cell.op == TEXT_OF_ANY):
        return _put_sized(o, cell, value.at, value.end - value.at)
    if cell.op != DIGITS and cell.op != TEXT_OF_ANY:
        return LEFT
    if value.kind == V_NUMBER:
        return _put_sized(o, cell, value.at, value.end - value.at)
    if _put_some(o, cell) or _reserve(o, 5):
        return LEFT
    place = o.size
    o.size += 5
    if value.kind == V_LONG:
        if _render_digits(o, value.whole):
            return LEFT
    elif value.kind != V_DOUBLE or _render_double(o, value.real):
        return LEFT
    return _insert_long(o, place, 5, o.size - place - 5)


cdef bint _has_byte(const Value *value, uint8_t byte) noexcept nogil:
    cdef const uint8_t *at = value.at
    while at < value.end:
        if at[0] == byte:
            return True
        at += 1
    return False
