# Names of objects: those of one message, and those of maps' entries that are kept for the next.

cdef struct Name:
    uint64_t hash
    const uint8_t *start
    uint32_t size
    uint32_t object
    uint32_t run

cdef enum:
    KNOWN_CHUNK = 1024
    MOST_KNOWN = 65535
    FIRST_SLOTS = 256
    SPELLED = 1 << 16  # bytes of names in a block, of which there are at most 64
    LONGEST = 63  # bytes of a name that is kept, whose length is then one byte
    NOWHERE = -1  # the node of names with escapes, which are kept to be pointed to
    MOST_STRANGE = 10000  # names that found no room, before room is made

cdef struct Known:  # a name of a map's entries, or a member that a record does not name
    uint64_t stamp  # the object that had it last
    const uint8_t *label  # the name quoted and with its colon, and behind that the name with its length, as in Avro
    int32_t node  # of the map or record
    int32_t next  # the number of the name that came next the last time
    int16_t label_size
    int16_t size

cdef struct KnownNames:  # numbered from 1
    Known *chunks[64]
    uint64_t *hashes[64]
    uint8_t *blocks[64]
    uint32_t *slots
    uint32_t slots_room
    int32_t count
    int block
    Py_ssize_t used  # of the last block
    bint is_full  # so that it stays for this message whether a name is kept
    int32_t strange

cdef struct Cursor:  # where in a record a message is
    const Instruction *record
    int node
    int others  # the map of members that have no field; the record itself where they are noted
    bint has_rest
    int level
    uint32_t own
    Py_ssize_t base  # of its slices
    int32_t *follows  # which member comes next, as far as the last message tells
    int last
    bint shuffled
    bint gaps
    int64_t unnamed  # members that have no field
    const uint8_t *name
    Py_ssize_t size
    Known *known
    Py_ssize_t place
    Py_ssize_t noted

cdef struct Place:  # to which a pointer leads
    int node  # the record
    int member  # -1 for one that it does not name
    int level
    int64_t index  # of an array's item, -1 without one
    const uint8_t *name
    Py_ssize_t size
