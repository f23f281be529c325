"""The same functions as in `scan.py`, over C pointers."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    #define CDCAVRO_ALL(byte) (0x0101010101010101u * (byte))

    /* Returns the end of a run of digits; reads eight at a time while at least eight bytes are left. */
    static const unsigned char *cdcavro_skip_digits(const unsigned char *at, const unsigned char *end) {
        uint64_t eight;
        for (; end - at >= 8; at += 8) {
            memcpy(&eight, at, 8);
            if ((eight & CDCAVRO_ALL(0xF0)) != CDCAVRO_ALL('0')) break;
            if (((eight + CDCAVRO_ALL(6)) & CDCAVRO_ALL(0xF0)) != CDCAVRO_ALL('0')) break;
        }
        while (*at >= '0' && *at <= '9') at++;
        return at;
    }

    /* RFC 8259, section 6; the text is followed by a 0. */
    static int cdcavro_is_number(const unsigned char *at, ptrdiff_t size) {
        const unsigned char *end = at + size;
        at += *at == '-';
        if (*at == '0') at++;
        else if (*at >= '1' && *at <= '9') at = cdcavro_skip_digits(at, end);
        else return 0;
        if (*at == '.') {
            if (*++at < '0' || *at > '9') return 0;
            at = cdcavro_skip_digits(at, end);
        }
        if ((*at | 32) == 'e') {
            at++;
            at += *at == '-' || *at == '+';
            if (*at < '0' || *at > '9') return 0;
            at = cdcavro_skip_digits(at, end);
        }
        return at == end;
    }

    /* Counts the colons outside strings; -1 for the number -0. The text is followed by a 0. */
    static ptrdiff_t cdcavro_colons(const unsigned char *text, ptrdiff_t size) {
        ptrdiff_t colons = 0;
        for (ptrdiff_t i = 0; i < size; i++) {
            switch (text[i]) {
            case ':':
                colons++;
                break;
            case '-':
                if (text[i + 1] == '0' && i + 2 <= size && text[i + 2] != '.' && (text[i + 2] | 32) != 'e') return -1;
                break;
            case '"':
                for (i++; i < size && text[i] != '"'; i++)
                    if (text[i] == 92) i++;
                break;
            }
        }
        return colons;
    }

    /* Counts the quotes before colons, at the speed of memory; -1 where an escape, white space or -0 makes that unsure. */
    static ptrdiff_t cdcavro_separators(const unsigned char *text, ptrdiff_t size) {
        ptrdiff_t separators = 0;
        for (ptrdiff_t from = 1; from < size - 1; from += 128) {
            ptrdiff_t to = size - 1 - from < 128 ? size - 1 : from + 128;
            unsigned char seen = 0, hard = 0;
            for (ptrdiff_t i = from; i < to; i++) {
                unsigned char before = text[i - 1], byte = text[i], next = text[i + 1];
                unsigned char separates = (byte == '"') & (next == ':');
                seen += separates;
                hard |= (separates & (before == 92)) | ((byte <= 32) & (next == ':'));
                hard |= (before == '-') & (byte == '0') & ((next <= 32) | (next == ',') | (next == ']') | (next == '}'));
            }
            if (hard) return -1;
            separators += seen;
        }
        return separators;
    }
    """
    bint cdcavro_is_number(const unsigned char *text, ptrdiff_t size) noexcept
    ptrdiff_t cdcavro_colons(const unsigned char *text, ptrdiff_t size) noexcept
    ptrdiff_t cdcavro_separators(const unsigned char *text, ptrdiff_t size) noexcept

cdef enum:
    LONG_DIGITS = 19


cpdef bint has_members(bytes raw, Py_ssize_t members) except -1:
    """Return whether a JSON text has exactly `members` members, repeated ones included, and no number `-0`."""
    if raw is None:
        raise TypeError("a text is bytes, not None")
    cdef const unsigned char *text = <const unsigned char *>PyBytes_AS_STRING(raw)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(raw)
    return cdcavro_separators(text, size) == members or cdcavro_colons(text, size) == members


cpdef bint has_long_number(bytes raw) except -1:
    """Return whether a text has 19 digits in a row, as any integer beyond 64 bits has."""
    if raw is None:
        raise TypeError("a text is bytes, not None")
    cdef const unsigned char *text = <const unsigned char *>PyBytes_AS_STRING(raw)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(raw)
    cdef Py_ssize_t end = LONG_DIGITS - 1
    cdef Py_ssize_t digits
    while end < size:
        digits = 0
        while digits < LONG_DIGITS and 48 <= text[end - digits] <= 57:
            digits += 1
        if digits == LONG_DIGITS:
            return True
        end += LONG_DIGITS - digits
    return False


cpdef bint is_number(str text) except -1:
    """Return whether a text is exactly one JSON number (RFC 8259, section 6)."""
    cdef Py_ssize_t size
    if text is None:
        raise TypeError("a text is str, not None")
    if not text.isascii():
        return False
    cdef const char *raw = PyUnicode_AsUTF8AndSize(text, &size)
    return cdcavro_is_number(<const unsigned char *>raw, size)
