# Bytes scanned a word at a time: plain text, UTF-8, and the hash of a name.

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if !defined(__GNUC__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    #error the engine is written for GCC and Clang on machines whose bytes are in Avro's order; without it the sources run
    #endif
    #define ONES 0x0101010101010101u
    #define TOPS 0x8080808080808080u

    /* The end of a run of bytes that a JSON string has as they are: all but quotes, backslashes and controls. */
    static inline const uint8_t *cdcavro_plain(const uint8_t *at, const uint8_t *end) {
        while (end - at >= 8) {
            uint64_t word, quote, slash, found;
            memcpy(&word, at, 8);
            quote = word ^ (ONES * 0x22);
            slash = word ^ (ONES * 0x5c);
            found = ((quote - ONES) & ~quote) | ((slash - ONES) & ~slash) | ((word - ONES * 0x20) & ~word);
            found &= TOPS;
            if (found) return at + (__builtin_ctzll(found) >> 3);
            at += 8;
        }
        while (at < end && *at != 0x22 && *at != 0x5c && *at >= 0x20) at++;
        return at;
    }

    /* Whether bytes are UTF-8 (RFC 3629, section 4). */
    static inline int cdcavro_is_utf8(const uint8_t *at, const uint8_t *end) {
        while (at < end) {
            if (end - at >= 8) {
                uint64_t word;
                memcpy(&word, at, 8);
                if (!(word & TOPS)) { at += 8; continue; }
            }
            uint8_t first = *at;
            if (first < 0x80) { at++; continue; }
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
        }
        return 1;
    }

    static inline uint64_t cdcavro_hash(const uint8_t *at, size_t size) {
        uint64_t hash = size * 0x9e3779b97f4a7c15u, word;
        while (size >= 8) {
            memcpy(&word, at, 8);
            hash = (hash ^ word) * 0xff51afd7ed558ccdu;
            hash ^= hash >> 32;
            at += 8;
            size -= 8;
        }
        word = 0;
        memcpy(&word, at, size);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        return hash ^ (hash >> 29);
    }
    """
    const uint8_t *cdcavro_plain(const uint8_t *at, const uint8_t *end) noexcept nogil
    bint cdcavro_is_utf8(const uint8_t *at, const uint8_t *end) noexcept nogil
    uint64_t cdcavro_hash(const uint8_t *at, size_t size) noexcept nogil
