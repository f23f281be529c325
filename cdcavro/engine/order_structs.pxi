# The order of rows: where their messages arrived, and the time of the lane, a topic partition or file, where they did.

cdef enum:  # what orders the changes of a pattern
    OF_FULL_LOAD, BY_NUMBERS, BY_ARRIVAL

cdef enum:  # the fields of a place
    TOPIC, PARTITION, OFFSET, FILE_, LINE, FIELDS

cdef enum:
    MOST_LANES = 128  # that are known at a time
    LANE_SLOTS = 256
    MOST_LANE_NUMBERS = 34  # as many as a message has

cdef struct Told:  # a field of a place: an integer, or where a text begins and its length
    bint has
    const uint8_t *start
    int64_t value

cdef struct Lane:
    uint64_t stamp  # of the last time that lanes were forgotten before this one was met
    uint64_t hash
    Py_ssize_t name  # where in the names of lanes
    Py_ssize_t size
    bint is_known  # the clock told its time
    bint is_left  # the clock told what has no room here
    bint is_changed
    int64_t offset  # of its last message
    int64_t line
    int64_t rank
    int64_t moves
    int count
    int64_t numbers[34]

cdef struct Ordering:
    bint is_asked
    bint has_clock
    bint is_unknown  # the lane of a message was not met yet
    bint lacks  # the last row that was written lacks columns
    Run *made  # order values of rows
    Run *head  # what those of a message begin with
    Run *file  # as it sorts
    Run *name  # of the message's lane
    Run *names
    Told place[5]
    int64_t row
    int rank
    bint is_later  # the message's own numbers are its lane's time
    bint is_again  # the place is the last of its lane
    Lane *lane
    Lane *lanes
    int16_t met[128]
    int lane_count
    uint64_t stamp
