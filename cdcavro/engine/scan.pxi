# Bytes scanned many at a time: plain text, UTF-8, and the hash of a name.


cdef extern from *:
    """
    #include <stdint.h>
    #include <stddef.h>
    #include <stdlib.h>
    #include <string.h>
    #if !defined(__GNUC__) || !defined(__SIZEOF_INT128__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    #error the engine is written for GCC and Clang on machines with the least byte first; without it the sources run
    #endif
    #ifdef __SSE2__
    #include <emmintrin.h>
    #endif
    #define ONES 0x0101010101010101u
    #define TOPS 0x8080808080808080u
    #define WIDE 16
    #define SLACK 32

    /* Which of 8 bytes have their top bit. */
    static inline uint32_t cdcavro_tops(uint64_t word) {
        return (((word & TOPS) >> 7) * 0x0102040810204080u) >> 56;
    }

    /* The first of 8 bytes that a JSON string does not have as it is: a quote, a backslash or a control. Later bits
       mean nothing. */
    static inline uint32_t cdcavro_special8(uint64_t word) {
        uint64_t quote = word ^ (ONES * 0x22), slash = word ^ (ONES * 0x5c);
        return cdcavro_tops(((quote - ONES) & ~quote) | ((slash - ONES) & ~slash) | ((word - ONES * 0x20) & ~word));
    }

    /* The same of 16 bytes, and which of them are not ASCII. */
    static inline uint32_t cdcavro_special(const uint8_t *at, uint32_t *tops) {
    #ifdef __SSE2__
        __m128i c = _mm_loadu_si128((const __m128i *)at);
        __m128i found = _mm_or_si128(_mm_cmpeq_epi8(c, _mm_set1_epi8(0x22)), _mm_cmpeq_epi8(c, _mm_set1_epi8(0x5c)));
        found = _mm_or_si128(found, _mm_cmpeq_epi8(_mm_min_epu8(c, _mm_set1_epi8(0x1f)), c));
        *tops = _mm_movemask_epi8(c);
        return _mm_movemask_epi8(found);
    #else
        uint64_t low, high;
        memcpy(&low, at, 8);
        memcpy(&high, at + 8, 8);
        *tops = cdcavro_tops(low) | cdcavro_tops(high) << 8;
        return cdcavro_special8(low) | cdcavro_special8(high) << 8;
    #endif
    }

    /* The end of a run of bytes, up to `stop`, that a JSON string has as they are. Up to `end` may be read. */
    static inline const uint8_t *cdcavro_plain(const uint8_t *at, const uint8_t *stop, const uint8_t *end) {
        uint32_t tops, found;
        while (end - at >= WIDE && at < stop) {
            found = cdcavro_special(at, &tops);
            if (found) {
                at += __builtin_ctz(found);
                return at < stop ? at : stop;
            }
            at += WIDE;
        }
        if (at > stop) return stop;
        while (at < stop && *at != 0x22 && *at != 0x5c && *at >= 0x20) at++;
        return at;
    }

    /* The same, and copies the run, for which there is room, and for WIDE bytes more; says if all of it is ASCII. */
    static inline const uint8_t *cdcavro_copy_plain(
        uint8_t *to, const uint8_t *at, const uint8_t *stop, const uint8_t *end, uint32_t *not_ascii
    ) {
        uint32_t tops, found, before;
        while (end - at >= WIDE && at < stop) {
            memcpy(to, at, WIDE);
            found = cdcavro_special(at, &tops);
            if (stop - at < WIDE) found |= (uint32_t)1 << (stop - at);
            if (found) {
                before = __builtin_ctz(found);
                *not_ascii |= tops & (((uint32_t)1 << before) - 1);
                return at + before;
            }
            *not_ascii |= tops;
            at += WIDE;
            to += WIDE;
        }
        for (; at < stop && *at != 0x22 && *at != 0x5c && *at >= 0x20; at++) {
            *not_ascii |= *at >> 7;
            *to++ = *at;
        }
        return at;
    }

    /* Copies bytes, of which there are few as a rule; `to` has room for SLACK more, and up to `end` may be read. */
    static inline void cdcavro_copy(uint8_t *to, const uint8_t *at, ptrdiff_t size, const uint8_t *end) {
        if (size <= SLACK && end - at >= SLACK) memcpy(to, at, SLACK);
        else if (size <= WIDE && end - at >= WIDE) memcpy(to, at, WIDE);
        else memcpy(to, at, size);
    }

    /* Whether bytes, at least one, begin with others, behind which SLACK may be read. */
    static inline int cdcavro_begins(const uint8_t *at, const uint8_t *end, const uint8_t *other, ptrdiff_t size) {
    #ifdef __SSE2__
        if (size <= SLACK && end - at >= SLACK) {  /* without a branch for the size */
            const __m128i *a = (const __m128i *)at, *b = (const __m128i *)other;
            uint32_t low = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(a), _mm_loadu_si128(b)));
            uint32_t high = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(a + 1), _mm_loadu_si128(b + 1)));
            return ~(low | high << WIDE) << (SLACK - size) == 0;
        }
    #endif
        return end - at >= size && memcmp(at, other, size) == 0;
    }

    /* Makes room for so many bytes, and SLACK behind them, which copies may write to; returns 0 if there is memory. */
    static __attribute__((cold, noinline)) int cdcavro_grow(uint8_t **out, ptrdiff_t *room, ptrdiff_t more) {
        ptrdiff_t wanted = *room + (*room >> 1) + more + 4096;
        uint8_t *grown = realloc(*out, wanted + SLACK);
        if (grown == NULL) return 1;
        *out = grown;
        *room = wanted;
        return 0;
    }

    /* Passes ASCII by. */
    static inline const uint8_t *cdcavro_ascii(const uint8_t *at, const uint8_t *end) {
    #ifdef __SSE2__
        for (; end - at >= 2 * WIDE; at += 2 * WIDE) {
            __m128i low = _mm_loadu_si128((const __m128i *)at), high = _mm_loadu_si128((const __m128i *)(at + WIDE));
            if (_mm_movemask_epi8(_mm_or_si128(low, high))) break;
        }
    #endif
        for (; end - at >= 8; at += 8) {
            uint64_t word;
            memcpy(&word, at, 8);
            if (word & TOPS) break;
        }
        while (at < end && *at < 0x80) at++;
        return at;
    }

    /* Whether bytes are UTF-8 (RFC 3629, section 4). */
    static inline int cdcavro_is_utf8(const uint8_t *at, const uint8_t *end) {
        for (;;) {
            uint8_t first;
            at = cdcavro_ascii(at, end);
            if (at == end) return 1;
            do {
                first = *at;
                if (first < 0xc2) return 0;
                if (first < 0xe0) {
                    if (end - at < 2 || (at[1] & 0xc0) != 0x80) return 0;
                    at += 2;
                } else if (first < 0xf0) {
                    if (end - at < 3 || (at[1] & 0xc0) != 0x80 || (at[2] & 0xc0) != 0x80) return 0;
                    if ((first == 0xe0 && at[1] < 0xa0) || (first == 0xed && at[1] > 0x9f)) return 0;
                    at += 3;
                } else {
                    if (first > 0xf4 || end - at < 4) return 0;
                    if ((at[1] & 0xc0) != 0x80 || (at[2] & 0xc0) != 0x80 || (at[3] & 0xc0) != 0x80) return 0;
                    if ((first == 0xf0 && at[1] < 0x90) || (first == 0xf4 && at[1] > 0x8f)) return 0;
                    at += 4;
                }
            } while (at < end && *at >= 0x80);
        }
    }

    /* Both halves of a product, so that each bit of it tells of each byte. */
    static inline uint64_t cdcavro_mix(uint64_t a) {
        unsigned __int128 product = (unsigned __int128)a * 0x9e3779b97f4a7c15u;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }

    static inline uint64_t cdcavro_hash(const uint8_t *at, size_t size) {
        uint64_t hash = size, word = 0, lanes[4] = {1, 2, 3, 4};
        uint32_t low, high;
        int i;
        if (size >= 128) {  /* products that do not wait for each other */
            for (; size >= 32; at += 32, size -= 32) {
                for (i = 0; i < 4; i++) {
                    memcpy(&word, at + 8 * i, 8);
                    lanes[i] = cdcavro_mix(lanes[i] ^ word) + 0xff51afd7ed558ccdu;
                }
            }
            for (i = 0; i < 4; i++) hash = cdcavro_mix(hash ^ lanes[i]) + 0xff51afd7ed558ccdu;
        }
        for (; size >= 8; at += 8, size -= 8) {
            memcpy(&word, at, 8);
            hash = cdcavro_mix(hash ^ word) + 0xff51afd7ed558ccdu;
        }
        word = 0;
        if (size >= 4) {
            memcpy(&low, at, 4);
            memcpy(&high, at + size - 4, 4);
            word = (uint64_t)high << 32 | low;
        } else if (size) {
            word = (uint32_t)at[0] | (uint32_t)at[size >> 1] << 8 | (uint32_t)at[size - 1] << 16;
        }
        return cdcavro_mix((hash ^ word) + 0xff51afd7ed558ccdu);
    }
    """
    enum:
        WIDE
        SLACK  # bytes behind the room, and behind texts of the program, for copies of a fixed size
    const uint8_t *cdcavro_plain(const uint8_t *at, const uint8_t *stop, const uint8_t *end) noexcept nogil
    const uint8_t *cdcavro_copy_plain(
        uint8_t *to, const uint8_t *at, const uint8_t *stop, const uint8_t *end, uint32_t *not_ascii
    ) noexcept nogil
    void cdcavro_copy(uint8_t *to, const uint8_t *at, Py_ssize_t size, const uint8_t *end) noexcept nogil
    bint cdcavro_begins(const uint8_t *at, const uint8_t *end, const uint8_t *other, Py_ssize_t size) noexcept nogil
    int cdcavro_grow(uint8_t **out, Py_ssize_t *room, Py_ssize_t more) noexcept nogil
    bint cdcavro_is_utf8(const uint8_t *at, const uint8_t *end) noexcept nogil
    uint64_t cdcavro_hash(const uint8_t *at, size_t size) noexcept nogil
