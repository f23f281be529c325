# Numbers: scanned, held against the doubles and integers that have the same text, and put out.

cdef enum:
    INTEGER = 1  # without fraction and exponent, in canonical form
    FRACTION = 2
    OTHER = 3  # with an exponent, or -0
    LONG_DIGITS = 19  # of which an integer may be longer than 64 bits


cdef extern from *:
    """
    /* Which of 8 bytes is the first that is no digit, 8 if all are. */
    static inline int cdcavro_run(uint64_t word) {
        word ^= ONES * 0x30;
        word = ((word + ONES * 0x76) | word) & TOPS;
        return word ? __builtin_ctzll(word) >> 3 : 8;
    }

    /* Passes digits by. */
    static inline const uint8_t *cdcavro_pass_digits(const uint8_t *at, const uint8_t *end) {
        uint64_t word;
        int run;
    #ifdef __SSE2__
        while (end - at >= WIDE) {
            __m128i c = _mm_sub_epi8(_mm_loadu_si128((const __m128i *)at), _mm_set1_epi8(0x30));
            run = ~_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(c, _mm_set1_epi8(9)), c)) & 0xffff;
            if (run) return at + __builtin_ctz(run);
            at += WIDE;
        }
    #endif
        while (end - at >= 8) {
            memcpy(&word, at, 8);
            run = cdcavro_run(word);
            at += run;
            if (run < 8) return at;
        }
        while (at < end && *at >= 48 && *at <= 57) at++;
        return at;
    }

    /* What up to 19 digits say. */
    static inline uint64_t cdcavro_whole(const uint8_t *at, const uint8_t *end) {
        uint64_t value = 0, word;
        while (end - at >= 8) {
            memcpy(&word, at, 8);
            word = ((word & (ONES * 0x0f)) * 2561) >> 8;
            word = ((word & 0x00ff00ff00ff00ffu) * 6553601) >> 16;
            value = value * 100000000u + (((word & 0x0000ffff0000ffffu) * 42949672960001u) >> 32);
            at += 8;
        }
        for (; at < end; at++) value = value * 10 + (*at - 48);
        return value;
    }

    /* Writes an integer that ends at a place, and returns where it begins. */
    static inline uint8_t *cdcavro_digits(uint8_t *end, uint64_t value) {
        static const char pairs[] =
            "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
            "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
            "8081828384858687888990919293949596979899";
        while (value >= 100) {
            end -= 2;
            memcpy(end, pairs + 2 * (value % 100), 2);
            value /= 100;
        }
        if (value < 10) {
            *--end = (uint8_t)(48 + value);
            return end;
        }
        end -= 2;
        memcpy(end, pairs + 2 * value, 2);
        return end;
    }
    """
    const uint8_t *cdcavro_pass_digits(const uint8_t *at, const uint8_t *end) noexcept nogil
    uint64_t cdcavro_whole(const uint8_t *at, const uint8_t *end) noexcept nogil
    uint8_t *cdcavro_digits(uint8_t *end, uint64_t value) noexcept nogil


cdef int _scan_number(Run *r, const uint8_t **start) noexcept nogil:
    """Pass a number by (RFC 8259, section 6) and return its kind, 0 for what is no number."""
    cdef const uint8_t *at = r.at
    cdef const uint8_t *end = r.end
    cdef int kind = INTEGER
    start[0] = at
    if at < end and at[0] == 45:
        at += 1
    if at >= end:
        return 0
    if at[0] == 48:
        at += 1
        if at - start[0] == 2:
            kind = OTHER
    elif 49 <= at[0] <= 57:
        at = cdcavro_pass_digits(at, end)
    else:
        return 0
    if at < end and at[0] == 46:
        kind = FRACTION
        at += 1
        if at >= end or not 48 <= at[0] <= 57:
            return 0
        at = cdcavro_pass_digits(at, end)
    if at < end and (at[0] | 32) == 101:
        kind = OTHER
        at += 1
        if at < end and (at[0] == 43 or at[0] == 45):
            at += 1
        if at >= end or not 48 <= at[0] <= 57:
            return 0
        at = cdcavro_pass_digits(at, end)
    r.at = at
    r.odd |= (kind == INTEGER and at - start[0] >= LONG_DIGITS) or (kind == OTHER and start[0][1] == 48)
    return kind


cdef inline bint _as_long(const uint8_t *at, const uint8_t *end, int64_t *value) noexcept nogil:
    """Return whether a canonical integer has at most 64 bits, and what it is."""
    cdef bint negative = at[0] == 45
    cdef uint64_t size
    at += negative
    if end - at > 19:
        return False
    size = cdcavro_whole(at, end)
    if negative:
        if size > <uint64_t>1 << 63:
            return False
        value[0] = <int64_t>(0 - size)
        return True
    value[0] = <int64_t>size
    return size < <uint64_t>1 << 63


cdef int _render_digits(Run *r, int64_t value) noexcept nogil:
    cdef uint8_t text[24]
    cdef uint8_t *start
    start = cdcavro_digits(text + 24, <uint64_t>value if value >= 0 else 0 - <uint64_t>value)
    if value < 0:
        start -= 1
        start[0] = 45
    return _put_bytes(r, start, text + 24 - start)
