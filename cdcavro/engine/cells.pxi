# Cells of typed rows: the value of a column, as it stands in a payload of the wire schema, as the Avro of its type.


# Values of rows: numbers, bytes, days and times, parsed and put out as Avro data, exactly or not at all.

cdef extern from *:
    """
    typedef __int128 cdcavro_signed;

    /* A number without exponent, of at most 38 digits, times ten to the power of `scale`; 0 if that is no integer,
       or a negative zero. The text is a number. */
    static inline int cdcavro_unscaled(const uint8_t *at, const uint8_t *end, int scale, cdcavro_signed *value) {
        cdcavro_signed size = 0;
        int digits = 0, places = -1, negative = *at == '-';
        at += negative;
        for (; at < end; at++) {
            if (*at == '.') { places = 0; continue; }
            if (places >= scale && places >= 0) { if (*at != '0') return 0; continue; }
            if (digits || *at != '0') { if (++digits > 38) return 0; }
            size = size * 10 + (*at - '0');
            if (places >= 0) places++;
        }
        if (places < 0) places = 0;
        for (; places < scale; places++) {
            if (size && ++digits > 38) return 0;
            size *= 10;
        }
        if (!size && negative) return 0;
        *value = negative ? -size : size;
        return 1;
    }

    static inline cdcavro_signed cdcavro_widened(int64_t value) { return value; }
    static inline cdcavro_signed cdcavro_joined(int64_t high, int64_t low) {
        return (cdcavro_signed)((unsigned __int128)(uint64_t)high << 64 | (uint64_t)low);
    }
    static inline int cdcavro_scaled(cdcavro_signed *value, int scale) {
        while (scale-- > 0) {
            if (*value > ((cdcavro_signed)1 << 120) || *value < -((cdcavro_signed)1 << 120)) return 0;
            *value *= 10;
        }
        return 1;
    }
    static inline int cdcavro_within(cdcavro_signed value, cdcavro_signed least, cdcavro_signed most) {
        return least <= value && value <= most;
    }

    /* The shortest big-endian two's complement, as Avro stores a decimal; returns its size, at most 16. */
    static inline int cdcavro_minimal(cdcavro_signed value, uint8_t *out) {
        uint8_t all[16];
        int i, first = 0;
        for (i = 15; i >= 0; i--) { all[i] = (uint8_t)value; value >>= 8; }
        while (first < 15
               && ((all[first] == 0 && all[first + 1] < 0x80) || (all[first] == 0xff && all[first + 1] >= 0x80)))
            first++;
        memcpy(out, all + first, 16 - first);
        return 16 - first;
    }

    /* Bytes as big-endian two's complement; 0 if there are none, or more than 16. */
    static inline int cdcavro_of_bytes(const uint8_t *at, int64_t size, cdcavro_signed *value) {
        cdcavro_signed read;
        if (size < 1 || size > 16) return 0;
        read = (int8_t)at[0];
        for (int64_t i = 1; i < size; i++) read = (cdcavro_signed)((unsigned __int128)read << 8) | at[i];
        *value = read;
        return 1;
    }

    static inline int cdcavro_sextet(uint8_t c) {
        if (c >= 'A' && c <= 'Z') return c - 'A';
        if (c >= 'a' && c <= 'z') return c - 'a' + 26;
        if (c >= '0' && c <= '9') return c - '0' + 52;
        return c == '+' ? 62 : c == '/' ? 63 : -1;
    }

    /* The bytes of the one standard base64 text of some bytes (RFC 4648, section 4); -1 for any other text. */
    static inline int64_t cdcavro_base64(const uint8_t *at, int64_t size, uint8_t *out) {
        uint8_t *start = out;
        if (size % 4) return -1;
        for (; size > 0; size -= 4, at += 4) {
            int a = cdcavro_sextet(at[0]), b = cdcavro_sextet(at[1]);
            int c = cdcavro_sextet(at[2]), d = cdcavro_sextet(at[3]);
            if (a < 0 || b < 0) return -1;
            *out++ = (uint8_t)(a << 2 | b >> 4);
            if (c < 0) {
                if (size != 4 || at[2] != '=' || at[3] != '=' || (b & 15)) return -1;
                break;
            }
            *out++ = (uint8_t)(b << 4 | c >> 2);
            if (d < 0) {
                if (size != 4 || at[3] != '=' || (c & 3)) return -1;
                break;
            }
            *out++ = (uint8_t)(c << 6 | d);
        }
        return out - start;
    }

    static inline int cdcavro_pair(const uint8_t *at) {
        if (at[0] < '0' || at[0] > '9' || at[1] < '0' || at[1] > '9') return -1;
        return (at[0] - '0') * 10 + (at[1] - '0');
    }

    /* The days since the epoch of YYYY-MM-DD, from the year 1 on; 0 for any other text. */
    static inline int cdcavro_day(const uint8_t *at, int64_t *days) {
        static const int8_t lengths[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
        int century = cdcavro_pair(at), year = cdcavro_pair(at + 2);
        int month = cdcavro_pair(at + 5), day = cdcavro_pair(at + 8);
        int leap;
        int64_t era, of_era, of_year;
        if (century < 0 || year < 0 || at[4] != '-' || at[7] != '-' || month < 1 || month > 12 || day < 1) return 0;
        year += century * 100;
        leap = (year % 4 == 0 && year % 100) || year % 400 == 0;
        if (year < 1 || day > lengths[month - 1] + (leap && month == 2)) return 0;
        /* Days from a civil date, counted from the first of March of the year 0. */
        if (month <= 2) year--;
        era = year / 400;
        of_era = year % 400;
        of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
        *days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
        return 1;
    }

    /* The microseconds since midnight of HH:MM:SS[.f], f being one to nine digits, zeros behind the sixth; else 0. */
    static inline int cdcavro_clock(const uint8_t *at, const uint8_t *end, int64_t *micros) {
        int hour, minute, second, i;
        int64_t part = 0;
        if (end - at < 8 || at[2] != ':' || at[5] != ':') return 0;
        hour = cdcavro_pair(at); minute = cdcavro_pair(at + 3); second = cdcavro_pair(at + 6);
        if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return 0;
        at += 8;
        if (at < end) {
            if (*at != '.' || end - at < 2 || end - at > 10) return 0;
            at++;
            for (i = 0; i < 9; i++) {
                int digit = at < end ? *at++ - '0' : 0;
                if (digit < 0 || digit > 9 || (i >= 6 && digit)) return 0;
                if (i < 6) part = part * 10 + digit;
            }
        }
        *micros = ((int64_t)hour * 3600 + minute * 60 + second) * 1000000 + part;
        return 1;
    }

    /* The microseconds of a local time, as if it were in UTC: YYYY-MM-DD[T ]HH:MM:SS[.f]. */
    static inline int cdcavro_local(const uint8_t *at, const uint8_t *end, int64_t *micros) {
        int64_t days, clock;
        if (end - at < 19 || (at[10] != ' ' && at[10] != 'T')) return 0;
        if (!cdcavro_day(at, &days) || !cdcavro_clock(at + 11, end, &clock)) return 0;
        *micros = days * 86400000000 + clock;
        return 1;
    }

    /* Digits as a number, at most 19 that fit into 63 bits; 0 for any other text. */
    static inline int cdcavro_counted(const uint8_t *at, const uint8_t *end, int64_t *value) {
        uint64_t read = 0;
        if (at >= end || end - at > 19) return 0;
        for (; at < end; at++) {
            if (*at < '0' || *at > '9') return 0;
            read = read * 10 + (*at - '0');
        }
        *value = (int64_t)read;
        return read <= INT64_MAX;
    }

    /* The microseconds of a text of seconds, without a sign: digits, and a fraction of one to six. */
    static inline int cdcavro_seconds(const uint8_t *at, const uint8_t *end, int64_t *micros) {
        const uint8_t *point = at;
        int64_t whole, part = 0;
        int i;
        while (point < end && *point != '.') point++;
        if (point - at > 12 || !cdcavro_counted(at, point, &whole) || (*at == '0' && point - at > 1)) return 0;
        if (point < end) {
            if (end - point < 2 || end - point > 7) return 0;
            point++;
            for (i = 0; i < 6; i++) {
                int digit = point < end ? *point++ - '0' : 0;
                if (digit < 0 || digit > 9) return 0;
                part = part * 10 + digit;
            }
        }
        *micros = whole * 1000000 + part;
        return 1;
    }
    """
    ctypedef struct cdcavro_signed:
        pass
    int cdcavro_unscaled(const uint8_t *at, const uint8_t *end, int scale, cdcavro_signed *value) noexcept nogil
    cdcavro_signed cdcavro_widened(int64_t value) noexcept nogil
    cdcavro_signed cdcavro_joined(int64_t high, int64_t low) noexcept nogil
    int cdcavro_scaled(cdcavro_signed *value, int scale) noexcept nogil
    int cdcavro_within(cdcavro_signed value, cdcavro_signed least, cdcavro_signed most) noexcept nogil
    int cdcavro_minimal(cdcavro_signed value, uint8_t *out) noexcept nogil
    int cdcavro_of_bytes(const uint8_t *at, int64_t size, cdcavro_signed *value) noexcept nogil
    int64_t cdcavro_base64(const uint8_t *at, int64_t size, uint8_t *out) noexcept nogil
    int cdcavro_day(const uint8_t *at, int64_t *days) noexcept nogil
    int cdcavro_clock(const uint8_t *at, const uint8_t *end, int64_t *micros) noexcept nogil
    int cdcavro_local(const uint8_t *at, const uint8_t *end, int64_t *micros) noexcept nogil
    int cdcavro_counted(const uint8_t *at, const uint8_t *end, int64_t *value) noexcept nogil
    int cdcavro_seconds(const uint8_t *at, const uint8_t *end, int64_t *micros) noexcept nogil


cdef enum:  # Operation: what becomes of a value, as `OPERATIONS` in `program.py` has it
    OP_GONE, OP_WHOLE, OP_DOUBLE, OP_SINGLE, OP_FLAG, OP_DECIMAL, OP_UNSCALED
    OP_STRING, OP_JSON, OP_ANYTHING, OP_DIGITS
    OP_LABEL, OP_INDEXED_LABEL, OP_LABELS, OP_MASKED_LABELS
    OP_BASE64, OP_LATIN1, OP_BITS, OP_COUNTED_BITS, OP_REVERSED_BITS
    OP_DAY, OP_CLOCK, OP_LOCAL, OP_SECONDS, OP_SECONDS_OR_LONG, OP_MILLISECONDS, OP_MICROSECONDS
    OP_PADDED_OR_SECONDS, OP_IN_ZONE, OP_ISO, OP_MILLIS, OP_LEFT

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

cdef enum:  # Branch: of a column's value, as `_COLUMN` in `wire/message_program.py` lists them
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


cdef int _put_cell(
    Run *r, Run *o, const Cell *cell, const Instruction *column, const Token *token, const Facts *facts
) noexcept nogil:
    """Put out the value of a column as the Avro of its type."""
    cdef Value value
    if _value_of(r, column, token, &value):
        return LEFT
    if value.kind == V_NULL:
        return _put(o, <uint8_t>cell.null)
    if cell.op == OP_WHOLE:
        return _put_bounded(r, o, cell, &value, facts.longs[cell.a], facts.longs[cell.a + 1])
    elif cell.op in (OP_STRING, OP_JSON, OP_ANYTHING, OP_DIGITS):
        return _put_cell_text(r, o, cell, &value)
    elif cell.op == OP_DECIMAL:
        return _put_decimal(r, o, cell, &value, facts.longs)
    elif cell.op == OP_UNSCALED:
        return _put_unscaled(o, cell, &value, facts.longs)
    elif cell.op in (OP_DAY, OP_CLOCK, OP_LOCAL, OP_SECONDS, OP_SECONDS_OR_LONG, OP_MILLISECONDS):
        return _put_moment(r, o, cell, &value, facts)
    elif cell.op in (OP_MICROSECONDS, OP_PADDED_OR_SECONDS, OP_IN_ZONE, OP_ISO, OP_MILLIS):
        return _put_moment(r, o, cell, &value, facts)
    elif cell.op == OP_DOUBLE:
        return _put_double(r, o, cell, &value)
    elif cell.op == OP_SINGLE:
        return _put_single(r, o, cell, &value)
    elif cell.op == OP_FLAG:
        return _put_flag(r, o, cell, &value)
    elif cell.op in (OP_LABEL, OP_INDEXED_LABEL):
        return _put_label(r, o, cell, &value, facts.symbols, facts.texts)
    elif cell.op in (OP_LABELS, OP_MASKED_LABELS):
        return _put_labels(r, o, cell, &value, facts.symbols, facts.texts)
    elif cell.op in (OP_BASE64, OP_LATIN1):
        return _put_binary(o, cell, &value)
    elif cell.op in (OP_BITS, OP_COUNTED_BITS, OP_REVERSED_BITS):
        return _put_bits(r, o, cell, &value)
    return LEFT


cdef int _put_bounded(Run *r, Run *o, const Cell *cell, const Value *value, int64_t least, int64_t most) noexcept nogil:
    """Put out an integer within bounds."""
    cdef int64_t whole
    if _whole_of(r, value, &whole) or not least <= whole <= most:
        return LEFT
    return _put_whole_cell(o, cell, whole)


cdef int _put_moment(Run *r, Run *o, const Cell *cell, const Value *value, const Facts *facts) noexcept nogil:
    """Put out a day or a time."""
    cdef int64_t count
    if _moment(r, cell, value, facts, &count):
        return LEFT
    return _put_whole_cell(o, cell, count)


cdef int _put_double(Run *r, Run *o, const Cell *cell, const Value *value) noexcept nogil:
    cdef double real
    if _real_of(r, value, EXACT, &real):
        return LEFT
    return _put_some(o, cell) or _put_bytes(o, <const uint8_t *>&real, 8)


cdef int _put_single(Run *r, Run *o, const Cell *cell, const Value *value) noexcept nogil:
    cdef double real
    cdef float single
    if _real_of(r, value, 1 << 24, &real) or _as_single(real, &single):
        return LEFT
    return _put_some(o, cell) or _put_bytes(o, <const uint8_t *>&single, 4)


cdef int _put_flag(Run *r, Run *o, const Cell *cell, const Value *value) noexcept nogil:
    """Put out a boolean, or one of the numbers 0 and 1."""
    cdef int64_t whole
    if value.kind == V_BOOLEAN:
        whole = value.whole
    elif _whole_of(r, value, &whole) or not 0 <= whole <= 1:
        return LEFT
    return _put_some(o, cell) or _put(o, <uint8_t>whole)


cdef int _put_label(
    Run *r, Run *o, const Cell *cell, const Value *value, const int32_t *symbols, const uint8_t *texts
) noexcept nogil:
    """Put out the label of an ENUM, which came as a label, or as its index counted from 1."""
    cdef int64_t index
    cdef int i
    if value.kind != V_STRING:
        return LEFT
    if cell.op == OP_INDEXED_LABEL:
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


cdef int _put_labels(
    Run *r, Run *o, const Cell *cell, const Value *value, const int32_t *symbols, const uint8_t *texts
) noexcept nogil:
    """Put out the labels of a SET, which came as labels, or as a number with a bit for each."""
    cdef int64_t mask = 0
    cdef Py_ssize_t place, size = 0
    cdef int i
    cdef const int32_t *symbol = symbols + 2 * cell.a
    if value.kind != V_STRING:
        return LEFT
    if cell.op == OP_LABELS:
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


cdef int _known_labels(
    const Cell *cell, const Value *value, const int32_t *symbols, const uint8_t *texts
) noexcept nogil:
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
    if cell.op == OP_BASE64:
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
    if value.kind == V_BOOLEAN and cell.op == OP_REVERSED_BITS and cell.a == 1:
        bits = <uint64_t>value.whole
    elif value.kind == V_LONG and cell.op == OP_BITS:
        if value.whole < 0:
            return LEFT
        bits = <uint64_t>value.whole
    elif value.kind == V_STRING and cell.op == OP_COUNTED_BITS:
        if not cdcavro_counted(value.at, value.end, &count) or (value.at[0] == 48 and value.end - value.at > 1):
            return LEFT
        bits = <uint64_t>count
        if not cell.a:  # without a width, as many bytes as the number needs
            size = 1
            while size < 8 and bits >> (8 * size):
                size += 1
    elif value.kind == V_STRING and value.end - value.at <= 12:
        count = cdcavro_base64(value.at, value.end - value.at, raw)
        if not 1 <= count <= MOST_BITS or (cell.op == OP_BITS and count != size) or count > size:
            return LEFT
        for i in range(count):
            bits = bits << 8 | raw[count - 1 - i if cell.op == OP_REVERSED_BITS else i]
    else:
        return LEFT
    if cell.a and cell.a < 64 and bits >> cell.a:
        return LEFT
    for i in range(size):
        turned[size - 1 - i] = <uint8_t>(bits >> (8 * i))
    return _put_sized(o, cell, turned, size)


cdef int _put_cell_text(Run *r, Run *o, const Cell *cell, const Value *value) noexcept nogil:
    """Put out a text, or the text of another scalar where the column takes it."""
    cdef Py_ssize_t place
    cdef int kind
    if value.kind == V_STRING:
        if cell.op == OP_DIGITS:
            kind = _number_in(r, value)
            if kind == 0 or not cell.c:
                return LEFT
        if cell.op == OP_STRING and cell.c and _has_byte(value, <uint8_t>cell.c):
            return LEFT
        return _put_sized(o, cell, value.at, value.end - value.at)
    if value.kind == V_TEXT and (cell.op == OP_JSON or cell.op == OP_ANYTHING):
        return _put_sized(o, cell, value.at, value.end - value.at)
    if cell.op != OP_DIGITS and cell.op != OP_ANYTHING:
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


# Days and times of cells, as Avro counts them.

cdef inline bint _within(int64_t value, int64_t least, int64_t most) noexcept nogil:
    return least <= value <= most


cdef inline bint _is_of_calendar(int64_t micros) noexcept nogil:
    """Return whether an instant is of the years 1 to 9999."""
    return FIRST_DAY * DAY_MICROS <= micros < (LAST_DAY + 1) * DAY_MICROS


cdef int _moment(Run *r, const Cell *cell, const Value *value, const Facts *facts, int64_t *count) noexcept nogil:
    """Give the days, microseconds or milliseconds that a value is."""
    cdef const uint8_t *at = value.at
    cdef const uint8_t *end = value.end
    cdef bint is_text = value.kind == V_STRING
    if cell.op == OP_DAY:
        if value.kind == V_LONG and cell.a:
            count[0] = value.whole
            return OK if FIRST_DAY <= value.whole <= LAST_DAY else LEFT
        return OK if is_text and end - at == 10 and cdcavro_day(at, count) else LEFT
    if cell.op == OP_CLOCK or cell.op == OP_LOCAL:
        if value.kind == V_LONG and cell.a:
            return _counted(cell, value.whole, count)
        if not is_text:
            return LEFT
        if cell.op == OP_CLOCK:
            return OK if cdcavro_clock(at, end, count) else LEFT
        return OK if end - at <= 26 and cdcavro_local(at, end, count) else LEFT
    if cell.op == OP_IN_ZONE:
        if not is_text:
            return LEFT
        # A fraction has just the digits of its column. Another text may be a number of seconds.
        if end - at != 19 + (cell.b + 1 if cell.b else 0) or at[10] != 32:
            return OK if cdcavro_seconds(at, end, count) and _is_of_calendar(count[0]) else LEFT
        return _in_zone(facts, at, end, count) or count[0] < 0
    return _instant(cell, value, is_text, count)


cdef inline bint _is_in_utc(const uint8_t *at, const uint8_t *end, int64_t *count) noexcept nogil:
    """Give the instant of a local time that is followed by a Z; return whether a text is one."""
    return end - at >= 20 and end[-1] == 90 and cdcavro_local(at, end - 1, count)


cdef int _instant(const Cell *cell, const Value *value, bint is_text, int64_t *count) noexcept nogil:
    """Give the microseconds of an instant, or its milliseconds."""
    cdef const uint8_t *at = value.at
    cdef const uint8_t *end = value.end
    cdef int64_t whole = value.whole
    if cell.op == OP_SECONDS or cell.op == OP_SECONDS_OR_LONG:
        if value.kind == V_LONG and cell.op == OP_SECONDS_OR_LONG and _within(whole, 0, 999999999999):
            count[0] = whole * 1000000
        elif not is_text or not (cdcavro_seconds(at, end, count) or _is_in_utc(at, end, count)):
            return LEFT
    elif cell.op == OP_MILLISECONDS or cell.op == OP_MILLIS:
        if value.kind != V_LONG or not _within(whole, -99999999999999, 999999999999999):
            return LEFT
        count[0] = whole * 1000
    elif cell.op == OP_MICROSECONDS:
        if value.kind != V_LONG:
            return LEFT
        count[0] = whole
    elif cell.op == OP_ISO:
        if not is_text or end - at < 20 or end[-1] != 90 or at[10] != 84 or not cdcavro_local(at, end - 1, count):
            return LEFT
        if count[0] < 0:
            return LEFT
    elif cell.op != OP_PADDED_OR_SECONDS or _padded(value, is_text, count):
        return LEFT
    if not _is_of_calendar(count[0]):
        return LEFT
    if cell.op == OP_MILLIS:
        count[0] = whole
    return OK


cdef int _counted(const Cell *cell, int64_t value, int64_t *count) noexcept nogil:
    """Give the microseconds of a count of units of 10^-a seconds, in a column with b digits of a second, or -1."""
    cdef int64_t unit = 1
    cdef int i
    for i in range(cell.a - cell.b if cell.b >= 0 else 0):
        unit *= 10
    if value % unit:
        return LEFT
    if cell.a == 9:
        if value % 1000:
            return LEFT
        count[0] = value // 1000
    elif cell.a == 3:
        if not _within(value, -99999999999999, 999999999999999):
            return LEFT
        count[0] = value * 1000
    else:
        count[0] = value
    if cell.op == OP_CLOCK:
        return OK if 0 <= count[0] < DAY_MICROS else LEFT
    return OK if _is_of_calendar(count[0]) else LEFT


cdef int _padded(const Value *value, bint is_text, int64_t *count) noexcept nogil:
    """Give the instant of 13 digits of milliseconds, optionally with nanoseconds, or of fewer digits of seconds."""
    cdef const uint8_t *at = value.at
    cdef int64_t whole, fine
    cdef int64_t size = value.end - value.at
    if value.kind == V_LONG:
        if _within(value.whole, 1000000000000, 9999999999999):
            count[0] = value.whole * 1000
            return OK
        if not _within(value.whole, 0, 9999999999):
            return LEFT
        count[0] = value.whole * 1000000
        return OK
    if not is_text:
        return LEFT
    if size == 13 and cdcavro_counted(at, value.end, &whole):
        count[0] = whole * 1000
        return OK
    if size == 23 and at[13] == 46:
        if not cdcavro_counted(at, at + 13, &whole) or not cdcavro_counted(at + 14, value.end, &fine) or fine % 1000:
            return LEFT
        if whole % 1000 != 0 and whole % 1000 != fine // 1000000:
            return LEFT
        count[0] = whole // 1000 * 1000000 + fine // 1000
        return OK
    if not cdcavro_seconds(at, value.end, count):
        return LEFT
    return OK if _within(count[0], 0, 9999999999999999) else LEFT


cdef int _in_zone(const Facts *facts, const uint8_t *at, const uint8_t *end, int64_t *count) noexcept nogil:
    """Give the instant of a local time in the source's zone, far from the times at which its clocks change."""
    cdef int64_t local
    cdef Py_ssize_t low = 0, high = facts.zones, middle
    cdef const int64_t *piece
    if end - at > 26 or not cdcavro_local(at, end, &local):
        return LEFT
    while low < high:
        middle = (low + high) // 2
        if facts.zone[3 * middle] <= local:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return LEFT
    piece = facts.zone + 3 * (low - 1)
    if local >= piece[1]:
        return LEFT
    count[0] = local - piece[2]
    return OK
