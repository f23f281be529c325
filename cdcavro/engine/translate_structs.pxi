# What a translation of payloads works with, and the state of one.

cdef enum:  # as in avro/translation/program.py
    ON_LEAVE, ON_NOTHING, ON_BOOLEAN, ON_INTEGER, ON_STRING, ON_BYTES, ON_TAKE, ON_DECIMAL, ON_ENUM
    ON_TO_FLOAT, ON_TO_DOUBLE, ON_WIDEN, ON_ARRAY, ON_MAP, ON_UNION, ON_INTO, ON_RECORD, ON_REORDER

cdef enum:
    ON_FIELD, ON_SKIP, ON_DEFAULT

cdef struct Turn:
    int32_t kind
    int32_t a
    int32_t b
    int32_t c

cdef struct Action:
    int32_t kind
    int32_t place
    int32_t first
    int32_t size

cdef struct Plan:
    const Turn *code
    const Action *actions
    const int32_t *indexes
    const int64_t *limits
    const uint8_t *texts
    int root
    bint is_same
    int most_levels
    int64_t most_items
    int64_t most_weightless
    Py_ssize_t most_bytes

cdef struct Piece:  # of a record: from `start` to `stop` in what is written, or in the texts of the program
    Py_ssize_t start
    Py_ssize_t stop
    bint is_stated

cdef struct Transit:  # what is on its way from one schema to another
    Run run
    const Plan *plan
    const uint8_t *start
    const uint8_t *kept  # from here on, what was read is the reader's as it is, and is yet to be written
    Py_ssize_t first  # where in what is written the payload begins
    int64_t items
    int64_t weightless
    Piece *pieces
    Py_ssize_t piece_count
    Py_ssize_t pieces_room
