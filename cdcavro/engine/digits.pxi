# Digits and variable-length integers, several at a time.

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
