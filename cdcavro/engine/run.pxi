# The program of a schema as it lies in memory, and the state of running it over messages and payloads.


cdef enum:  # InstructionKind: what an instruction does, as in `program.py`
    BOOLEAN, INT, LONG, STRING, ENUM, COLUMN, ARRAY, MAP, RECORD, OPTIONAL, VARIANT, BYTES, DOUBLE, FLOAT, LEAVE

cdef enum:  # Missing: what stands for a member without a value, as in `program.py`
    ABSENT, NULL_, REQUIRED, REST, EXTRAS

cdef enum:  # flags of a record, as in `program.py`
    LACKS_NULLS = 1
    CAPITALS = 2
    IS_BRIEF = 4

cdef enum:  # outcomes
    OK = 0
    LEFT = 1  # to the exact way
    ENDED = 2

cdef enum:
    KEPT = 1 << 24  # bytes of room that wait for the next message, or for the next batch of 10,000
    FIRST_NOTES = 16
    FIRST_NAMES = 256
    MARK = 1  # the byte of a brief text that stands for its head, as in `program.py`

cdef struct Instruction:
    int32_t kind
    int32_t a[7]

cdef struct Member:
    int32_t label
    int32_t size
    int32_t node
    int32_t missing
    int32_t pointer
    int32_t length
    int32_t part  # of a typed row
    int32_t unit  # of a time, in microseconds

cdef struct Step:  # to a member by name, or to an item by its index
    const uint8_t *name
    Py_ssize_t size
    int64_t index

cdef struct Repeated:  # a long JSON text of a column, which the next message often has again, as it has a schema
    uint8_t *text
    Py_ssize_t size
    Py_ssize_t room
    uint32_t run  # in which it was last seen

cdef struct Note
cdef struct Slice
cdef struct Patch
cdef struct Name
cdef struct NameTable

cdef struct Run:
    const Instruction *code
    const Member *members
    const int32_t *symbols
    const uint8_t *texts
    int32_t *follows
    int root
    bint capitals  # in escapes of what is put out
    bint is_brief  # what is put out has no head, but a mark for it
    bint has_head  # a mark in a text stands for a head that is known
    Py_ssize_t head_size
    bint odd  # a number was seen that msgspec does not parse exactly
    int32_t count  # of members
    int32_t nodes
    int32_t most_levels
    int64_t most_items
    Py_ssize_t most_size
    const uint8_t *at
    const uint8_t *end
    uint8_t *out
    Py_ssize_t size
    Py_ssize_t room
    Note *notes
    Py_ssize_t noted
    Py_ssize_t notes_room
    Py_ssize_t pointed  # bytes of pointers
    uint8_t *said
    Py_ssize_t said_size
    Py_ssize_t said_room
    Step steps[130]
    int stepped
    Slice *slices
    Py_ssize_t depth
    Py_ssize_t slices_room
    Name *names
    uint32_t named
    uint32_t names_room
    uint32_t run
    uint32_t object
    NameTable *known
    # Payload to text: what the extras of the last payload say, which the next one often repeats.
    int32_t *patched  # the patch of each member, and behind them how many each record has
    Patch *patches
    int64_t index  # of the item that is put out
    int32_t *other  # the number of the member, of those that no record names, that is to be expected
    int patch_count
    int patches_room
    Py_ssize_t around  # where what stands before the value of a Kafka record is said, and its length
    Py_ssize_t around_size
    int64_t items_left
    int applied
    bint again
    bint vary
    const uint8_t *learned
    const uint8_t *learned_end
    uint8_t tail[2048]
    Py_ssize_t tail_size
    Repeated repeated[8]  # by its level
    # Batches: where each value of a column ends.
    int32_t *ends
    Py_ssize_t ends_room
    Run *next  # of those that wait


cdef void _begin(Run *r, const uint8_t *start, Py_ssize_t size) noexcept nogil:
    r.at, r.end = start, start + size
    r.noted = r.depth = 0
    r.stepped = 0
    r.named = r.object = 0
    r.run += 1
    if r.run == 0:
        memset(r.names, 0, r.names_room * sizeof(Name))
        _forget_names(r.known)
        r.run = 1
    elif r.known.strange > MOST_STRANGE:
        _forget_names(r.known)


cdef void _shrink(Run *r) noexcept:
    """Give back much room, which does not wait for the next message."""
    cdef int i
    if r.room > KEPT:
        free(r.out)
        r.out = NULL
        r.room = 0
    if r.said_room > KEPT:
        free(r.said)
        r.said = NULL
        r.said_room = r.said_size = 0
        _forget_extras(r)
    for i in range(8):
        if r.repeated[i].room > KEPT:
            free(r.repeated[i].text)
            memset(r.repeated + i, 0, sizeof(Repeated))
    if r.slices_room > KEPT // 64:
        free(r.slices)
        r.slices = NULL
        r.slices_room = 0
    if r.patches_room > KEPT // 64:
        free(r.patches)
        r.patches = NULL
        r.patches_room = 0
        _forget_extras(r)
    if r.ends_room > KEPT // 4:
        free(r.ends)
        r.ends = NULL
        r.ends_room = 0


cdef void _tear_down(Run *r) noexcept:
    """Free a run, and those that wait behind it."""
    cdef Run *next
    cdef int i
    while r != NULL:
        next = r.next
        free(r.out)
        free(r.notes)
        free(r.said)
        for i in range(8):
            free(r.repeated[i].text)
        free(r.names)
        if r.known != NULL:
            _forget_names(r.known)
        free(r.known)
        free(r.slices)
        free(r.follows)
        free(r.patched)
        free(r.patches)
        free(r.ends)
        free(r)
        r = next
