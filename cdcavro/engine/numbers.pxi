# Numbers: digits scanned and put out, held against the integers and doubles that have the same text.


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
    static inline uint64_t cdcavro_whole(const uint8_t *at, const uint8_t *stop) {
        uint64_t value = 0, word;
        while (stop - at >= 8) {
            memcpy(&word, at, 8);
            word = ((word & (ONES * 0x0f)) * 2561) >> 8;
            word = ((word & 0x00ff00ff00ff00ffu) * 6553601) >> 16;
            value = value * 100000000u + (((word & 0x0000ffff0000ffffu) * 42949672960001u) >> 32);
            at += 8;
        }
        for (; at < stop; at++) value = value * 10 + (*at - 48);
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

    /* Writes a number as Avro's variable-length integer, and returns its length; there is room for 10 bytes. */
    static inline int cdcavro_varint(uint8_t *out, uint64_t value) {
        int size = 0;
        for (; value >= 0x80; value >>= 7) out[size++] = (uint8_t)(value | 0x80);
        out[size] = (uint8_t)value;
        return size + 1;
    }
    """
    const uint8_t *cdcavro_pass_digits(const uint8_t *at, const uint8_t *end) noexcept nogil
    uint64_t cdcavro_whole(const uint8_t *at, const uint8_t *stop) noexcept nogil
    uint8_t *cdcavro_digits(uint8_t *end, uint64_t value) noexcept nogil
    int cdcavro_varint(uint8_t *out, uint64_t value) noexcept nogil


cdef enum:
    INTEGER = 1  # without fraction and exponent, in canonical form
    FRACTION = 2
    OTHER = 3  # with an exponent, or -0
    LONG_DIGITS = 19  # of which an integer may be longer than 64 bits


cdef int _scan_number(Run *r, const uint8_t **start) noexcept nogil:
    """Pass a number by (RFC 8259, section 6) and return its kind, 0 for what is no number."""
    cdef const uint8_t *at = r.at
    cdef const uint8_t *end = r.end
    cdef int kind = INTEGER
    cdef int64_t whole
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
    if kind == INTEGER and at - start[0] >= LONG_DIGITS:
        r.odd |= not _as_long(start[0], at, &whole)
    r.odd |= kind == OTHER and start[0][1] == 48
    return kind


cdef inline bint _as_long(const uint8_t *at, const uint8_t *stop, int64_t *value) noexcept nogil:
    """Return whether a canonical integer has at most 64 bits, and what it is."""
    cdef bint negative = at[0] == 45
    cdef uint64_t size
    at += negative
    if stop - at > 19:
        return False
    size = cdcavro_whole(at, stop)
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


cdef extern from *:
    """
    #define TEN_15 1000000000000000u
    #define TEN_17 100000000000000000u
    #define TWO_52 4503599627370496.0
    typedef unsigned __int128 cdcavro_wide;
    #define ZEROS 10000000000000000000u
    static const cdcavro_wide cdcavro_tens[] = {
        1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, 100000000u, 1000000000u, 10000000000u,
        100000000000u, 1000000000000u, 10000000000000u, 100000000000000u, 1000000000000000u, 10000000000000000u,
        100000000000000000u, 1000000000000000000u, ZEROS, (cdcavro_wide)ZEROS * 10u,
    };

    /* Drops the zeros at the end of digits, of which so many are behind the point. */
    static inline uint64_t cdcavro_stripped(uint64_t digits, int *places) {
        int twice;
        for (twice = 0; twice < 2 && digits % 100000000u == 0; twice++) { digits /= 100000000u; *places -= 8; }
        if (digits % 10000u == 0) { digits /= 10000u; *places -= 4; }
        if (digits % 100u == 0) { digits /= 100u; *places -= 2; }
        if (digits % 10u == 0) { digits /= 10u; *places -= 1; }
        return digits;
    }

    /* The shortest digits that only this double stands for, the nearest of them, and how many are behind the point
       (Giulietti, "The Schubfach way to render doubles"). It must be positive, from 0.0001 up to 2^52, with a fraction.
       All products fit into 128 bits, so nothing is rounded. */
    static inline uint64_t cdcavro_shortest(double value, int *places) {
        uint64_t bits, whole, half;
        int q, power, out, is_even, is_low, is_high;
        cdcavro_wide exact, low, high;
        memcpy(&bits, &value, 8);
        q = (int)(bits >> 52) - 1075;
        whole = (bits & ((1ull << 52) - 1)) | 1ull << 52;
        out = (bits << 12) == 0;  /* the next lower double is only half as far */
        is_even = !(whole & 1);
        power = -((q * 1262611 - (out ? 524031 : 0)) >> 22);
        exact = cdcavro_tens[power] * (4 * whole);
        low = cdcavro_tens[power] * (4 * whole - 2 + out) + !is_even;
        high = cdcavro_tens[power] * (4 * whole + 2) - !is_even;
        q = 2 - q;
        whole = (uint64_t)(exact >> q);
        half = whole / 10 * 10;
        *places = power;
        is_low = low <= (cdcavro_wide)half << q;
        is_high = (cdcavro_wide)(half + 10) << q <= high;
        if (is_low != is_high) return cdcavro_stripped(is_low ? half : half + 10, places);
        is_low = low <= (cdcavro_wide)whole << q;
        is_high = (cdcavro_wide)(whole + 1) << q <= high;
        if (is_low != is_high) return whole + is_high;
        exact -= (cdcavro_wide)whole << q;
        half = (exact >> (q - 1)) & 1;
        if (half && !(exact & (((cdcavro_wide)1 << (q - 1)) - 1))) half = whole & 1;
        return whole + half;
    }

    /* The double whose text is the shortest, of two figures at least, that only this float stands for. It must be 0, or
       from 0.0001 up to 10^7, whichever sign it has. A float has 24 bits and 10^12 another 28, so nothing is rounded
       but to a place behind the point, and half to even by the sum. */
    static double cdcavro_of_single(float single) {
        double size = single < 0 ? -single : single, power = 10, near;
        if (size == (double)(uint64_t)size) return single;
        while (size * power < 10) power *= 10;
        for (;; power *= 10) {
            near = (size * power + TWO_52 - TWO_52) / power;
            if ((float)near == (float)size || power >= 1e12) return single < 0 ? -near : near;
        }
    }

    /* The double nearest to digits, up to 10^17, of which so many, up to 20, are behind the point. */
    static double cdcavro_nearest(uint64_t digits, int places) {
        int up = __builtin_clzll(digits) + 64, down;
        cdcavro_wide above = (cdcavro_wide)digits << up;
        cdcavro_wide whole = above / cdcavro_tens[places], rest = above - whole * cdcavro_tens[places];
        uint64_t bits, power;
        double value;
        down = whole >> 64 ? 128 - __builtin_clzll((uint64_t)(whole >> 64)) : 64 - __builtin_clzll((uint64_t)whole);
        down -= 53;
        bits = (uint64_t)(whole >> down);
        above = whole & (((cdcavro_wide)1 << down) - 1);
        whole = (cdcavro_wide)1 << (down - 1);
        if (above > whole || (above == whole && (rest || bits & 1))) bits++;
        power = (uint64_t)(1023 + down - up) << 52;
        memcpy(&value, &power, 8);
        return (double)bits * value;
    }
    """
    const uint64_t TEN_15, TEN_17
    double cdcavro_of_single(float single) noexcept nogil
    const double TWO_52
    uint64_t cdcavro_shortest(double value, int *places) noexcept nogil
    double cdcavro_nearest(uint64_t digits, int places) noexcept nogil


cdef enum:
    MOST_FIGURES = 17  # of a double's text
    MOST_PLACES = 20

cdef double[23] TENS = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
]


cdef inline bint _is_shortest(double value, uint64_t digits, int places) noexcept nogil:
    cdef int found
    return value < TWO_52 and digits == cdcavro_shortest(value, &found) and places == found


cdef bint _as_double(const uint8_t *at, const uint8_t *end, double *value) noexcept nogil:
    """Return whether a number without exponent is the shortest text of a double, and which."""
    cdef bint negative = at[0] == 45
    cdef uint64_t digits = 0
    cdef int places
    cdef const uint8_t *point
    at += negative
    if end - at > MOST_FIGURES + 6:
        return False
    while at[0] != 46:
        if digits >= TEN_17:
            return False
        digits = digits * 10 + (at[0] - 48)
        at += 1
    point = at
    at += 1
    while at < end:
        if digits >= TEN_17:
            return False
        digits = digits * 10 + (at[0] - 48)
        at += 1
    places = <int>(end - point) - 1
    if (end - 1)[0] == 48:
        # No text of a double has other zeros at its end. Those up to 2^53 are all the integers; beyond, there are gaps.
        if places > 1 or digits >= TEN_17:
            return False
        value[0] = <double>(digits // 10)
        if <uint64_t>value[0] != digits // 10:
            return False
    else:
        if digits >= TEN_17 or places > MOST_PLACES:
            return False
        # Both are exact, so the quotient is the nearest double, and no other text of up to 15 figures has the same.
        value[0] = <double>digits / TENS[places] if digits < TEN_15 else cdcavro_nearest(digits, places)
        if value[0] < 0.0001 or (digits >= TEN_15 and not _is_shortest(value[0], digits, places)):
            return False
    if negative:
        value[0] = -value[0]
    return True


cdef int _render_double(Run *r, double value) noexcept nogil:
    """Put out the shortest text of a double that has one without exponent."""
    cdef double size = -value if value < 0 else value
    cdef uint8_t text[56]
    cdef uint8_t *end = text + 54
    cdef uint8_t *start
    cdef int places = 1
    cdef uint64_t digits
    if size == 0:
        memcpy(&digits, &value, 8)
        return _put_bytes(r, <const uint8_t *>b"-0.0", 4) if digits else _put_bytes(r, <const uint8_t *>b"0.0", 3)
    if not (0.0001 <= size < 1e16):
        return LEFT
    digits = <uint64_t>size
    if <double>digits == size:
        digits *= 10
    else:
        digits = cdcavro_shortest(size, &places)
    start = cdcavro_digits(end, digits)
    while end - start <= places:
        start -= 1
        start[0] = 48
    start -= 1
    memmove(start, start + 1, end - start - 1 - places)
    (end - places - 1)[0] = 46
    if value < 0:
        start -= 1
        start[0] = 45
    return _put_bytes(r, start, end - start)


cdef int _render_java(Run *r, double value) noexcept nogil:
    """Put out a double as Java does, with an exponent below 0.001 and from 10,000,000 on; stop at a very long one."""
    cdef double size = -value if value < 0 else value
    cdef uint8_t text[24]
    cdef uint8_t *end = text + 24
    cdef uint8_t *start
    cdef uint64_t digits
    cdef int places = 0, power
    if size == 0 or 0.001 <= size < 1e7:
        return _render_double(r, value)
    if not 0.0001 <= size < 1e15:
        return LEFT
    digits = <uint64_t>size
    if <double>digits != size:
        digits = cdcavro_shortest(size, &places)
    start = cdcavro_digits(end, digits)
    power = <int>(end - start) - 1 - places
    while end - start > 1 and (end - 1)[0] == 48:
        end -= 1
    if (value < 0 and _put(r, 45)) or _put(r, start[0]) or _put(r, 46):
        return LEFT
    if _put(r, 48) if end - start == 1 else _put_bytes(r, start + 1, end - start - 1):
        return LEFT
    return _put(r, 69) or _render_digits(r, power)
