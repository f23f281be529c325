# Patterns: what messages of one kind have in common byte for byte, and with it where their rows go.

cdef int64_t LARGEST = 0x7FFFFFFFFFFFFFFF

cdef enum:  # which part of a typed row a member is
    FIXED, UNUSED, WITHIN, BEFORE, AFTER, ROW, ROWS, OLD, KEY, EVENT, EVENT_FINE, SYSTEM, SYSTEM_FINE
    TRANSACTION, TRANSACTION_ELSE, NUMBER_0, NUMBER_1, NUMBER_2, NUMBER_3, NUMBER_4, NUMBER_5, NUMBER_6, NUMBER_7
    PLACE, ROW_NUMBER, ROW_COUNT, POSITION
    PARTS

cdef enum:  # how the numbers of a position are told
    NO_POSITION, COUNTS, SEQUENCE, WHOLE_NUMBER, SEQUENCE_ID, BINLOG, LSN, SCN, REDO, NUMBERS, COMMIT

cdef enum:
    MOST_NUMBERS = 34
    MOST_KEYS = 64
    MOST_PATTERNS = 4096
    MOST_KEPT = 1 << 26  # bytes of all patterns
    MOST_ROWS = 100000  # of a message

cdef struct Cell:
    int32_t name
    int32_t size
    int32_t op
    int32_t some
    int32_t null
    int32_t a
    int32_t b
    int32_t c

cdef struct Token:  # the value of a column in a payload, from the index of its branch on, and of which row it is
    const uint8_t *start
    const uint8_t *end
    uint64_t row

cdef struct Slot:  # where a part stands in a payload, without the index of its branch
    const uint8_t *start
    const uint8_t *end
    const Member *member
    int node

cdef struct Facts:  # what cells refer to
    const int64_t *longs
    const int32_t *symbols
    const uint8_t *texts
    const int64_t *zone
    Py_ssize_t zones

cdef struct Pattern:
    uint64_t hash
    int32_t number
    const uint8_t *fixed
    Py_ssize_t fixed_size
    Facts facts
    const Cell *cells
    int count
    const int32_t *key  # the cells of the key; -1 as their count if the table has none
    int key_count
    const int32_t *same  # the cells of a key that an update of it would split
    int same_count
    const uint8_t *head  # the first fields of `source`
    Py_ssize_t head_size
    const uint8_t *place  # where its messages say themselves that they arrived
    Py_ssize_t place_size
    int position
    int order  # what orders its messages
    uint8_t phase
    bint is_batched  # without a time, their numbers are those of batches
    int before
    int after
    uint8_t op
    bint bare_transaction  # an empty transaction is none
    Py_ssize_t weight
    int32_t *index  # of cells by name, an open table
    uint32_t index_room
    int32_t *follows  # which cell came behind which

cdef struct RowMade:
    int32_t message
    int32_t pattern
    Py_ssize_t key  # where they end
    Py_ssize_t payload
    bint is_keyed
    Py_ssize_t order
    bint lacks  # columns of the row after the change

cdef struct Typing:  # the state of turning messages into rows
    Run *run
    bint is_change  # messages are payloads of changes, each of one row
    int64_t number  # of a change's row in its message, and how many this has
    int64_t count
    Run *fixed
    Run *keys
    Run *payloads
    Run *said  # of a message before its tables are known
    Slot slots[27]
    const uint8_t *key_names[64]
    Py_ssize_t key_sizes[64]
    Token key_values[64]
    int key_count
    Py_ssize_t loose  # bytes that each row repeats and that do not belong to the pattern
    Token *before
    Token *after
    Py_ssize_t *starts
    Py_ssize_t room
    uint64_t row
    int64_t event
    int64_t system
    bint has_event
    bint has_system
    int64_t numbers[34]
    int number_count
    RowMade *made
    Py_ssize_t made_count
    Py_ssize_t made_room
    const uint8_t *words  # texts that stand for a value which the source did not give
    const int32_t *word_ends
    int word_count
    const int64_t *zone
    Py_ssize_t zones
    const uint8_t *place
    Py_ssize_t place_size
    Ordering order
