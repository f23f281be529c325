# What columns in Arrow's layout are filled by, and what they are while they are being filled.

cdef enum:  # as in engine/column_program.py
    AS_NOTHING, AS_BOOLEAN, AS_INT, AS_LONG, AS_TAKEN, AS_TEXT, AS_BYTES, AS_DECIMAL, AS_SYMBOL
    AS_LIST, AS_MAP, AS_RECORD, AS_OPTION, AS_UNION

cdef enum:
    NO_CELLS, CELL_BITS, CELLS, CELL_ENDS

cdef struct Filling:  # an instruction; its operands stand where those of a translation do
    Turn turn
    int32_t column
    int32_t first
    int32_t count
    int32_t unused

cdef struct Vessel:  # a column: every cell that is not filled is null, and 0 or of no length
    uint8_t *bits  # which cells are not null
    uint8_t *cells  # values, or bits of booleans, or where each text or list ends
    uint8_t *data  # of texts
    int32_t layout
    int32_t width
    int32_t space  # the column of the list whose items are the cells, -1 for rows
    Py_ssize_t least  # how many cells there are room for from the beginning
    Py_ssize_t cost  # what the cells of all rows take as soon as one is filled, in bytes
    Py_ssize_t *left  # how many bytes all columns of rows may take yet
    Py_ssize_t room  # for cells, a multiple of 64
    Py_ssize_t filled
    Py_ssize_t ended  # how many cells have been told where they end
    Py_ssize_t size  # of the data, or items of all lists
    Py_ssize_t data_room

cdef struct Vessels:
    const Filling *code
    const int32_t *indexes
    Vessel *columns
    Py_ssize_t most  # bytes or items of a column
    Py_ssize_t most_room  # for the items of all lists and maps
    Py_ssize_t *room  # that these take
