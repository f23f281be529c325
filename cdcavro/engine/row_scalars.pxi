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
        while (first < 15 && ((all[first] == 0 && all[first + 1] < 0x80) || (all[first] == 0xff && all[first + 1] >= 0x80)))
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
            int a = cdcavro_sextet(at[0]), b = cdcavro_sextet(at[1]), c = cdcavro_sextet(at[2]), d = cdcavro_sextet(at[3]);
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
        int century = cdcavro_pair(at), year = cdcavro_pair(at + 2), month = cdcavro_pair(at + 5), day = cdcavro_pair(at + 8);
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

    /* The microseconds since midnight of HH:MM:SS[.f], with one to nine digits, behind the sixth zeros; 0 for others. */
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

    /* The microseconds of seconds as OMS spells them, without a sign: digits, and a fraction of one to six. */
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
