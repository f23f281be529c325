# Names of objects: those of one message, and those of maps' entries that are kept for the next.

cdef struct Name:
    uint64_t hash
    const uint8_t *start
    uint32_t size
    uint32_t object
    uint32_t run

cdef enum:
    MOST_KNOWN = 1000
    KNOWN_SLOTS = 2048
    SPELLED = 1 << 16
    LONGEST = 63  # bytes of a name that is kept, whose length is then one byte
    MOST_STRANGE = 10000  # names that found no room, before room is made

cdef struct Known:  # a name of a map's entries
    uint64_t hash
    uint64_t stamp  # the object that had it last
    int32_t node  # the map, plus 1
    int32_t label  # where it stands quoted and with its colon in `spelled`, and behind that with its length, as in Avro
    int32_t label_size
    int32_t size
    int32_t next  # the number of the name that came next the last time

cdef struct KnownNames:  # numbered from 1; those without a name have no node
    Known known[1001]
    uint16_t slots[2048]
    uint8_t spelled[(1 << 16) + 32]
    int32_t count
    int32_t spelled_size
    int32_t strange


cdef struct Cursor:  # where in a record a message is
    const Instruction *record
    int rest  # the map of members that have no field, -1 without one
    int level
    uint32_t own
    Py_ssize_t base  # of its slices
    int32_t *follows  # which member comes next, as far as the last message tells
    int last
    bint shuffled
    bint gaps
    int64_t others  # members that have no field
    const uint8_t *name
    Py_ssize_t size
    Known *known
    Py_ssize_t place
    Py_ssize_t noted
