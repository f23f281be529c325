# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The engine: runs the program of a wire schema over the bytes of messages and payloads, without Python objects.

It stops at whatever is not plain, and then the exact way in Python does that one message and finds the fault,
if there is one. What the engine accepts is what the exact way gives, byte for byte.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free as py_free
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset, strcmp

from cdcavro.avro.buffer cimport Buffer

cdef extern from "Python.h":
    double PyOS_string_to_double(const char *text, char **end, object error) except? -1.0
    char *PyOS_double_to_string(double value, char code, int precision, int flags, int *kind) except NULL

cdef enum:
    BOOLEAN, INT, LONG, STRING, ENUM, COLUMN, ARRAY, MAP, RECORD, OPTIONAL, VARIANT

cdef enum:
    ABSENT, NULL_, REQUIRED, REST, EXTRAS

cdef enum:  # what became of a member; 0 is that it was not reached yet
    LEFT_OUT = 1
    WRITTEN = 2
    NULLED = 3

cdef enum:
    OK = 0
    LEFT = 1  # to the exact way
    MOST_PROBES = 64
    MOST_DIGITS = 4000
    VARINT = 10
    MOST_PATCHES = 64
    INSIDE = 128  # a mark of a member: something in it has a patch
    MOST_NOTES = 1000
    MOST_NAMES = 1 << 18  # of a message, in a table that is half full at the most
    KEPT = 1 << 22  # bytes of room that wait for the next message
    TAIL = 2048
    FIRST_NOTES = 16
    FIRST_NAMES = 256
    NEWLINE = 10

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
    int32_t unused[2]

cdef struct Note:  # where its pointer and its text stand in `said`; the text begins where the pointer stops
    Py_ssize_t start
    Py_ssize_t stop
    Py_ssize_t size

cdef struct Step:  # to a member by name, or to an item by its index
    const uint8_t *name
    Py_ssize_t size
    int64_t index

cdef struct Slice:  # where a member was written, and its notes
    Py_ssize_t start
    Py_ssize_t stop
    Py_ssize_t state
    Py_ssize_t first_note
    Py_ssize_t last_note

cdef struct Name:
    uint64_t hash
    const uint8_t *start
    uint32_t size
    uint32_t object
    uint32_t run

cdef struct Patch:  # a text in place of a member, or of one that the schema does not name, whose label is said, too
    int32_t member
    int32_t node
    uint32_t applied  # in which run it replaced a value
    Py_ssize_t start
    Py_ssize_t stop
    Py_ssize_t end

cdef struct Run:
    const Instruction *code
    const Member *members
    const int32_t *symbols
    const uint8_t *texts
    int32_t *follows
    int root
    bint odd  # a number was seen that msgspec does not parse exactly
    int32_t count
    int32_t most_levels
    int64_t most_items
    const uint8_t *at
    const uint8_t *end
    uint8_t *out
    Py_ssize_t size
    Py_ssize_t room
    Note *notes
    Py_ssize_t noted
    Py_ssize_t notes_room
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
    # Payload to text: what the extras of the last payload say, which the next one often repeats.
    uint8_t *patched
    Patch patches[64]
    int patch_count
    int64_t items_left
    int applied
    bint again
    bint vary
    const uint8_t *learned
    const uint8_t *learned_end
    uint8_t tail[2048]
    Py_ssize_t tail_size

include "scan.pxi"
include "output.pxi"
include "numbers.pxi"
include "compact.pxi"
include "to_payload.pxi"
include "notes.pxi"
include "members.pxi"
include "to_text.pxi"
include "patches.pxi"


COMPILED = True


cdef class Engine:
    """The engine of one program (`Program`). Several threads may use it."""

    def __cinit__(self, program):
        self._code, self._fields = program.code.tobytes(), program.fields.tobytes()
        self._symbols, self._texts = program.symbols.tobytes(), program.texts
        self._root = program.root
        self._levels, self._items = program.bounds
        self._writing = self._new_run()
        self._reading = self._new_run()

    def __dealloc__(self):
        _tear_down(<Run *>self._writing)
        _tear_down(<Run *>self._reading)

    cdef void *_new_run(self) except NULL:
        """Return the state of runs in one direction, of which one is under way at a time."""
        cdef Run *r = <Run *>calloc(1, sizeof(Run))
        cdef Py_ssize_t nodes = len(self._code) // sizeof(Instruction), i
        cdef int j
        if r == NULL:
            raise MemoryError
        r.root = self._root
        r.code = <const Instruction *>PyBytes_AS_STRING(self._code)
        r.members = <const Member *>PyBytes_AS_STRING(self._fields)
        r.symbols = <const int32_t *>PyBytes_AS_STRING(self._symbols)
        r.texts = <const uint8_t *>PyBytes_AS_STRING(self._texts)
        r.most_levels, r.most_items = self._levels, self._items
        r.count = <int>(len(self._fields) // sizeof(Member))
        r.follows = <int32_t *>calloc(nodes + r.count + 1, sizeof(int32_t))
        r.notes_room, r.names_room, r.tail_size = FIRST_NOTES, FIRST_NAMES, 1
        r.notes = <Note *>malloc(FIRST_NOTES * sizeof(Note))
        r.names = <Name *>calloc(FIRST_NAMES, sizeof(Name))
        r.patched = <uint8_t *>calloc(r.count + 1, 1)
        if r.follows == NULL or r.notes == NULL or r.names == NULL or r.patched == NULL:
            _tear_down(r)
            raise MemoryError
        for i in range(nodes):
            if r.code[i].kind == RECORD:
                for j in range(r.code[i].a[1]):
                    r.follows[r.code[i].a[0] + j] = j + 1
        return r

    cpdef bytes encode(self, bytes raw):
        """Return a message as a payload; None where it is left to the exact way, as whatever is faulty is."""
        cdef Run *r = <Run *>self._writing
        r.size = 0
        return _taken(r, r.root >= 0 and _write_message(r, r.root, _start(raw), PyBytes_GET_SIZE(raw)) == OK)

    cpdef bint is_plain(self, bytes raw) except -1:
        """Return whether a message is one that msgspec parses exactly, and that conforms to the schema or is noted."""
        cdef Run *r = <Run *>self._writing
        r.size = 0
        r.odd = r.root < 0
        return not r.odd and _write_message(r, r.root, _start(raw), PyBytes_GET_SIZE(raw)) == OK and not r.odd

    cpdef Py_ssize_t encode_lines(self, list lines, Py_ssize_t first, Buffer out) except -1:
        """Append the payloads of lines from an index on; return the index of the first line that is left, or their number."""
        cdef Run *r = <Run *>self._writing
        cdef Py_ssize_t i
        cdef bytes raw
        if first < 0 or lines is None or out is None:
            raise ValueError("the lines from an index on, and a buffer for their payloads")
        for i in range(first, len(lines)):
            raw = lines[i]
            r.size = 0
            if r.root < 0 or _write_message(r, r.root, _start(raw), PyBytes_GET_SIZE(raw)):
                return i
            out.append_raw(<const char *>r.out, r.size)
        return len(lines)

    cpdef bytes decode(self, bytes raw):
        """Return a payload as text; None where it is left to the exact way."""
        cdef Run *r = <Run *>self._reading
        r.size = 0
        return _taken(
            r,
            r.root >= 0
            and _render_message(r, r.root, _start(raw), PyBytes_GET_SIZE(raw)) == OK
            and r.at == r.end,
        )

    cpdef tuple decode_lines(self, bytes raw, Py_ssize_t position, Py_ssize_t count, Buffer out, Py_ssize_t most):
        """Append at most `count` payloads from a position on as lines of text, until `out` has `most` bytes.

        Return the position after them and their number; it stops at a payload that is left to the exact way.
        """
        cdef Run *r = <Run *>self._reading
        cdef Py_ssize_t done = 0
        if out is None or not 0 <= position <= PyBytes_GET_SIZE(raw):
            raise ValueError("the payloads from a position on, and a buffer for their lines")
        while done < count and len(out) < most:
            r.size = 0
            if r.root < 0 or _render_message(r, r.root, _start(raw) + position, PyBytes_GET_SIZE(raw) - position):
                break
            position = r.at - _start(raw)
            if _put(r, NEWLINE):
                raise MemoryError
            out.append_raw(<const char *>r.out, r.size)
            done += 1
        return position, done


cdef bytes _taken(Run *r, bint is_done):
    """Return what a run has put out, None if it did not come to its end; much room does not wait for the next."""
    cdef bytes taken = PyBytes_FromStringAndSize(<const char *>r.out, r.size) if is_done else None
    if r.room > KEPT:
        free(r.out)
        r.out = NULL
        r.room = 0
    if r.said_room > KEPT:
        free(r.said)
        r.said = NULL
        r.said_room = r.said_size = 0
        _forget_extras(r)
    if r.slices_room > KEPT // 64:
        free(r.slices)
        r.slices = NULL
        r.slices_room = 0
    return taken


cdef inline const uint8_t *_start(bytes raw) except NULL:
    if raw is None:
        raise TypeError("a text or a payload is bytes, not None")
    return <const uint8_t *>PyBytes_AS_STRING(raw)


cdef void _tear_down(Run *r) noexcept:
    if r == NULL:
        return
    free(r.out)
    free(r.notes)
    free(r.said)
    free(r.names)
    free(r.slices)
    free(r.follows)
    free(r.patched)
    free(r)
