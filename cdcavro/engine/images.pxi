# Records whose columns and values are arrays beside each other, put out as JSON with an object for each row.


cdef enum:  # what a member of such a record is, as IMAGE_MEMBERS names it
    AN_INT, A_LONG, A_STRING, A_PLACE, A_TRANSACTION, A_SOURCE, AN_OPERATION, A_NAME, SOME_LONGS, SOME_TAGS
    SOME_FIELDS, AN_IMAGE, A_LAST


cdef enum:  # what a value in an image is, as IMAGE_VALUES names it
    OF_NULL, OF_INTEGER, OF_TEXT, OF_DECIMAL, OF_DOUBLE, OF_INSTANT, OF_PARTS, OF_BINARY, OF_STRING, OF_EMPTY, OF_OTHERS


cdef enum:
    MOST_STATED = 4096  # facts that are kept, each a table's as a rule
    MOST_FACTS = 1 << 12  # bytes of names and keys that are kept
    YEAR_CODE = 13
    DATE_CODE = 10
    TIME_CODE = 11
    ALL_PARTS = 7


cdef int64_t YEAR_10000 = 253402300800  # in seconds


cdef dict IMAGE_MEMBERS = {
    "int": AN_INT, "long": A_LONG, "string": A_STRING, "place": A_PLACE, "transaction": A_TRANSACTION,
    "source": A_SOURCE, "operation": AN_OPERATION, "name": A_NAME, "longs": SOME_LONGS, "tags": SOME_TAGS,
    "fields": SOME_FIELDS, "images": AN_IMAGE, "last": A_LAST,
}


cdef dict IMAGE_VALUES = {
    "null": OF_NULL, "integer": OF_INTEGER, "text": OF_TEXT, "decimal": OF_DECIMAL, "double": OF_DOUBLE,
    "instant": OF_INSTANT, "parts": OF_PARTS, "binary": OF_BINARY, "string": OF_STRING, "empty": OF_EMPTY,
    "others": OF_OTHERS,
}


cdef struct Extent:  # a text that is there already, of the record or of the reader; NULL for none
    const uint8_t *start
    Py_ssize_t size


cdef Extent NOTHING_THERE


cdef struct Labelled:  # a member of a record, or a type of values, with what is put out before it
    int kind
    Extent labels[3]


cdef struct ImageColumn:
    Extent name
    int64_t code  # of its type


cdef struct ImageRun:  # a record that is being read
    Run *r
    Run *forms
    ImageColumn *columns
    int64_t room
    int64_t count
    bint is_brief  # without how columns and values were sent
    Extent place, transaction, name, key
    int source


cdef inline int _put_extent(Run *r, const Extent *piece) noexcept nogil:
    return _put_bytes(r, piece.start, piece.size)


cdef inline int _quote_extent(Run *r, const Extent *piece) noexcept nogil:
    return _put_quoted(r, piece.start, piece.start + piece.size, piece.start + piece.size)


cdef inline int _take_extent(Run *r, Extent *piece) noexcept nogil:
    return _read_string(r, &piece.start, &piece.size)


cdef inline int _take_int(Run *r, int64_t *value) noexcept nogil:
    """Read an integer of 32 bits."""
    return LEFT if _read_long(r, value) or not -(<int64_t>1 << 31) <= value[0] < <int64_t>1 << 31 else OK


cdef int _copy_int(Run *r, Run *to) noexcept nogil:
    cdef int64_t value
    return LEFT if _take_int(r, &value) or _render_digits(to, value) else OK


cdef int _put_number_or_text(Run *r, const Extent *text) noexcept nogil:
    """Put out a text as the number that it is, or as a string."""
    cdef const uint8_t *at = r.at
    cdef const uint8_t *end = r.end
    cdef const uint8_t *start
    cdef bint is_number
    r.at, r.end = text.start, text.start + text.size
    is_number = _scan_number(r, &start) != 0 and r.at == r.end
    r.at, r.end = at, end
    return _put_bytes(r, text.start, text.size) if is_number else _quote_extent(r, text)


cdef inline uint8_t *_pair(uint8_t *out, int64_t value) noexcept nogil:
    out[0], out[1] = <uint8_t>(48 + value // 10), <uint8_t>(48 + value % 10)
    return out + 2


cdef inline uint8_t *_micros(uint8_t *out, int64_t value) noexcept nogil:
    out[0] = 46
    return _pair(_pair(_pair(out + 1, value // 10000), value // 100 % 100), value % 100)


cdef inline uint8_t *_date_text(uint8_t *out, int64_t year, int64_t month, int64_t day) noexcept nogil:
    out = _pair(_pair(out, year // 100), year % 100)
    out[0] = 45
    out = _pair(out + 1, month)
    out[0] = 45
    return _pair(out + 1, day)


cdef inline uint8_t *_time_text(uint8_t *out, int64_t hour, int64_t minute, int64_t second) noexcept nogil:
    out = _pair(out, hour)
    out[0] = 58
    out = _pair(out + 1, minute)
    out[0] = 58
    return _pair(out + 1, second)


cdef int _put_instant(Run *r) noexcept nogil:
    """Put out the seconds and microseconds of an instant from 1970 to 9999 as a text in UTC."""
    cdef int64_t seconds, micros, days, era, of_era, years, of_year, month
    cdef uint8_t text[40]
    cdef uint8_t *out = text + 1
    if _read_long(r, &seconds) or _take_int(r, &micros):
        return LEFT
    if not 0 <= seconds < YEAR_10000 or not 0 <= micros < 1000000:
        return LEFT
    days = seconds // 86400 + 719468
    seconds %= 86400
    era = days // 146097
    of_era = days % 146097
    years = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * years + years // 4 - years // 100)
    month = (5 * of_year + 2) // 153
    of_year -= (153 * month + 2) // 5 - 1
    month += 3 if month < 10 else -9
    out = _date_text(out, years + era * 400 + (month <= 2), month, of_year)
    out[0] = 84
    out = _micros(_time_text(out + 1, seconds // 3600, seconds // 60 % 60, seconds % 60), micros)
    out[0], out[1] = 90, 34
    text[0] = 34
    return _put_bytes(r, text, out + 2 - text)


# The letters of a form, by the part of a time.
cdef const char *LETTERS = b"yMdHmsf"


cdef int _put_parts(Run *r, Run *forms, int64_t code) noexcept nogil:
    """Put out the parts of a time as a text that says them all, and in its form the letters of those that are there."""
    cdef int64_t parts[7]
    cdef int i, there = 0, index
    if _put_bytes(forms, <const uint8_t *>b',"parts":"', 10):
        return LEFT
    for i in range(7):
        parts[i] = 0
        if _read_index(r, &index) or index > 1:
            return LEFT
        if index:
            there |= 1 << i
            if _take_int(r, &parts[i]) or _put(forms, LETTERS[i]):
                return LEFT
        if not 0 <= parts[i] <= (9999 if i == 0 else 999999 if i == 6 else 99):
            return LEFT
    if _put(forms, 34):
        return LEFT
    if code == YEAR_CODE or there == 1:
        for i in range(1, 7):
            if parts[i]:
                return LEFT
        return _render_digits(r, parts[0])
    return _put_moment_text(r, parts, code, there)


cdef int _put_moment_text(Run *r, const int64_t *parts, int64_t code, int there) noexcept nogil:
    """Put out the date and the time of those parts that are shown; others must be nothing."""
    cdef uint8_t text[48]
    cdef uint8_t *out = text + 1
    cdef bint has_date, has_time
    has_date = code == DATE_CODE or (code != TIME_CODE and there & 7)
    has_time = code == TIME_CODE or (code != DATE_CODE and there & 56)
    if not has_date and (not has_time or parts[0] or parts[1] or parts[2]):
        return LEFT
    if not has_time and (parts[3] or parts[4] or parts[5] or parts[6]):
        return LEFT
    text[0] = 34
    if has_date:
        out = _date_text(out, parts[0], parts[1], parts[2])
        out[0] = 32
        out += has_time
    if has_time:
        out = _time_text(out, parts[3], parts[4], parts[5])
        out = _micros(out, parts[6]) if parts[6] else out
    out[0] = 34
    return _put_bytes(r, text, out + 1 - text)


cdef int _put_two_ints(Run *r, Run *forms) noexcept nogil:
    """Put out a precision and a scale in a form."""
    if _put_bytes(forms, <const uint8_t *>b',"precision":', 13) or _copy_int(r, forms):
        return LEFT
    return LEFT if _put_bytes(forms, <const uint8_t *>b',"scale":', 9) or _copy_int(r, forms) else OK


cdef int _put_binary_value(Run *r, const Extent *raw) noexcept nogil:
    """Put out bytes in base64."""
    cdef const uint8_t *at = r.at
    cdef const uint8_t *end = r.end
    cdef int left
    r.at, r.end = raw.start, raw.start + raw.size
    left = _render_bytes(r, raw.size) if raw.size <= INT32_MAX else LEFT
    r.at, r.end = at, end
    return left


cdef class ImageReader(Engine):
    """Reads records of columns beside values, which it puts out as JSON text; it leaves what is not plain.

    `layout` has the members in their order, each as what it is and what stands before it; `values` the types of values;
    `words` the symbols of sources and operations as JSON, and which sources number the types of columns; `charsets`
    those that are UTF-8; `key` the tag that has the key, and `stated` what says of a source, a name and a key what is
    put out of them.
    """

    cdef list _kept
    cdef Labelled _layout[24]
    cdef Labelled _values[24]
    cdef Extent _sources[32]
    cdef Extent _operations[32]
    cdef Extent _charsets[16]
    cdef bint _numbered[32]
    cdef Extent _key
    cdef int _steps, _types, _source_count, _operation_count, _charset_count
    cdef object _stated
    cdef dict _known

    def __init__(self, program, layout, values, words, charsets, bytes key, stated):
        self._kept = [key, layout, values, words, charsets]
        sources, operations, numbered = words
        if max(len(layout), len(values)) > 24 or max(len(sources), len(operations)) > 32 or len(charsets) > 16:
            raise ValueError("a reader of at most 24 members and types of values")
        self._steps, self._types = len(layout), len(values)
        self._source_count, self._operation_count = len(sources), len(operations)
        self._charset_count = len(charsets)
        for i, (kind, *labels) in enumerate(layout):
            self._label(&self._layout[i], IMAGE_MEMBERS[kind], labels)
        for i, (kind, *labels) in enumerate(values):
            self._label(&self._values[i], IMAGE_VALUES[kind], labels)
        for i, text in enumerate(sources):
            self._sources[i], self._numbered[i] = _extent_of(text), text in numbered
        for i, text in enumerate(operations):
            self._operations[i] = _extent_of(text)
        for i, text in enumerate(charsets):
            self._charsets[i] = _extent_of(text)
        self._key = _extent_of(key)
        self._stated, self._known = stated, {}

    cdef int _label(self, Labelled *one, int kind, list labels) except -1:
        one.kind = kind
        for i, label in enumerate(labels):
            one.labels[i] = _extent_of(label)
        return 0

    def text(self, bytes raw not None):
        """Return the JSON text of a record; None where it is left to the exact way, as whatever is faulty is."""
        cdef ImageRun run
        cdef int left = LEFT
        self._open(&run, False)
        try:
            left = self._put_record(&run, _start(raw), PyBytes_GET_SIZE(raw))
        finally:
            made = self._close(&run, left == OK)
        return made

    def column(self, column, Py_ssize_t first, Py_ssize_t base, Py_ssize_t most):
        """Return the texts of a column's records as `Engine.decode_column` does, without how values were sent.

        It also stops at what may be a text.
        """
        cdef Column values
        cdef ColumnValue given
        cdef ImageRun run
        cdef Py_ssize_t i, kept
        ends = array("i")
        _open_column(&values, column)
        try:
            if not 0 <= first <= values.count or not 0 <= base <= most < <Py_ssize_t>1 << 31:
                raise ValueError("the values from an index on, which end within 31 bits")
            self._open(&run, True)
            try:
                for i in range(first, values.count):
                    if _column_value(&values, i, &given):
                        break
                    kept = run.r.size
                    if given.start != NULL and (_may_be_text(&given) or self._put_record(&run, given.start, given.size)
                                                or run.r.size > most - base):
                        run.r.size = kept
                        break
                    ends.append(base + run.r.size)
            finally:
                made = self._close(&run, True)
        finally:
            _close_column(&values)
        return made, ends.tobytes(), first + len(ends)

    cdef int _open(self, ImageRun *run, bint is_brief) except -1:
        memset(run, 0, sizeof(ImageRun))
        run.is_brief = is_brief
        run.r = self._borrow_run(&self._reading)
        run.forms = self._borrow_run(&self._writing)
        return 0

    cdef bytes _close(self, ImageRun *run, bint is_done):
        free(run.columns)
        self._return_run(run.forms, &self._writing, False)
        return self._return_run(run.r, &self._reading, is_done)

    cdef int _put_record(self, ImageRun *run, const uint8_t *start, Py_ssize_t size) except -1:
        cdef Run *r = run.r
        cdef int i
        if size > r.most_size:
            return LEFT
        _begin(r, start, size)
        r.items_left = size
        run.count = 0
        run.place = run.transaction = run.name = run.key = NOTHING_THERE
        for i in range(self._steps):
            if self._put_step(run, &self._layout[i]):
                return LEFT
        if r.at != r.end or self._put_stated(run) or _put_offset(run):
            return LEFT
        if run.transaction.size and not (run.transaction.size == 1 and run.transaction.start[0] == 48):
            if _put_bytes(r, <const uint8_t *>b',"transaction":', 15) or _quote_extent(r, &run.transaction):
                return LEFT
        return _put_bytes(r, <const uint8_t *>b',"binary":true}', 15)

    cdef int _put_step(self, ImageRun *run, const Labelled *step) noexcept nogil:
        """Put out a member."""
        cdef Run *r = run.r
        cdef Extent text
        cdef int64_t value
        cdef int index
        if step.kind == SOME_FIELDS:
            return _put_fields(run, step)
        if step.kind == AN_IMAGE:
            return self._put_image(run, step)
        if step.kind == A_LAST and r.at == r.end:
            return OK  # older records end before it
        if step.kind == A_NAME or step.kind == SOME_LONGS:
            if _read_index(r, &index) or index > 1:
                return LEFT
            if index == 0:
                return OK
        if _put_extent(r, &step.labels[0]):
            return LEFT
        if step.kind == AN_INT:
            return _copy_int(r, r)
        if step.kind == A_LONG or step.kind == A_LAST:
            return LEFT if _read_long(r, &value) or _render_digits(r, value) else OK
        if step.kind == SOME_LONGS:
            return _put_longs(r)
        if step.kind == SOME_TAGS:
            return self._put_tags(run)
        if step.kind == A_SOURCE:
            return _put_one_of(r, self._sources, self._source_count, &run.source)
        if step.kind == AN_OPERATION:
            return _put_one_of(r, self._operations, self._operation_count, &index)
        if _take_extent(r, &text) or _quote_extent(r, &text):
            return LEFT
        if step.kind == A_PLACE:
            run.place = text
        elif step.kind == A_TRANSACTION:
            run.transaction = text
        elif step.kind == A_NAME:
            run.name = text
        return OK

    cdef int _put_tags(self, ImageRun *run) noexcept nogil:
        """Put out the tags, each of which stands once, and remember the key."""
        cdef Run *r = run.r
        cdef int64_t count, i
        cdef uint32_t own
        cdef Extent name, value
        r.object += 1
        own = r.object
        if _read_count(r, &count) or _put(r, 123):
            return LEFT
        for i in range(count):
            if (i and _put(r, 44)) or _take_extent(r, &name) or _add_name(r, own, name.start, name.size):
                return LEFT
            if _quote_extent(r, &name) or _put(r, 58) or _take_extent(r, &value) or _quote_extent(r, &value):
                return LEFT
            if name.size == self._key.size and memcmp(name.start, self._key.start, name.size) == 0:
                run.key = value
        if count and _read_end(r):
            return LEFT
        return _put(r, 125)

    cdef int _put_image(self, ImageRun *run, const Labelled *step) noexcept nogil:
        """Put out a row as an object, and behind it the forms of its values."""
        cdef Run *r = run.r
        cdef Run *forms = run.forms
        cdef Extent text
        cdef int64_t count, i
        cdef int branch
        cdef bint first = True
        if _read_index(r, &branch) or branch > 2:
            return LEFT
        if branch == 0:
            return OK
        if branch == 1:
            return LEFT if _put_extent(r, &step.labels[0]) or _take_extent(r, &text) or _quote_extent(r, &text) else OK
        if _read_count(r, &count) or count != run.count or _put_extent(r, &step.labels[1]) or _put(r, 123):
            return LEFT
        forms.size = 0
        for i in range(count):
            if (i and _put(forms, 44)) or self._put_value(run, &run.columns[i], &first):
                return LEFT
        if count and _read_end(r):
            return LEFT
        if _put(r, 125):
            return LEFT
        if run.is_brief:
            return OK
        if _put_extent(r, &step.labels[2]) or _put(r, 91):
            return LEFT
        return LEFT if _put_bytes(r, forms.out, forms.size) or _put(r, 93) else OK

    cdef int _put_value(self, ImageRun *run, const ImageColumn *column, bint *first) noexcept nogil:
        """Put out a column with its value, and the form of the value; not a column that the log does not have."""
        cdef Run *r = run.r
        cdef Run *forms = run.forms
        cdef const Labelled *type
        cdef int index, symbol
        cdef int64_t code = column.code if self._numbered[run.source] else -1
        if _read_index(r, &index) or index >= self._types:
            return LEFT
        type = &self._values[index]
        if type.kind == OF_EMPTY:
            if _read_index(r, &symbol) or symbol > 1 or _put_extent(forms, &type.labels[symbol]):
                return LEFT
            if symbol:
                return OK
        if not first[0] and _put(r, 44):
            return LEFT
        first[0] = False
        if _quote_extent(r, &column.name) or _put(r, 58):
            return LEFT
        if type.kind == OF_EMPTY:
            return _put_bytes(r, <const uint8_t *>b"null", 4)
        if type.kind == OF_NULL:
            if _put_bytes(forms, <const uint8_t *>b"null", 4):
                return LEFT
            return _put_bytes(r, <const uint8_t *>b"null", 4)
        if _put_extent(forms, &type.labels[0]) or self._put_content(r, forms, type.kind, code):
            return LEFT
        return _put(forms, 125)

    cdef int _put_content(self, Run *r, Run *forms, int kind, int64_t code) noexcept nogil:
        cdef Extent first, second
        if kind == OF_INTEGER:
            if _put_bytes(forms, <const uint8_t *>b',"precision":', 13) or _copy_int(r, forms):
                return LEFT
            return LEFT if _take_extent(r, &first) or _put_number_or_text(r, &first) else OK
        if kind == OF_DECIMAL:
            return LEFT if _take_extent(r, &first) or _put_number_or_text(r, &first) else _put_two_ints(r, forms)
        if kind == OF_DOUBLE:
            return LEFT if _put_double_value(r) else _put_two_ints(r, forms)
        if kind == OF_INSTANT:
            return _put_instant(r)
        if kind == OF_PARTS:
            return _put_parts(r, forms, code)
        if kind == OF_OTHERS or _take_extent(r, &first) or _take_extent(r, &second):
            return LEFT
        if kind == OF_TEXT:
            if not self._is_utf8(&first) or _put_bytes(forms, <const uint8_t *>b',"charset":', 11):
                return LEFT
        elif _put_bytes(forms, <const uint8_t *>b',"object":', 10):
            return LEFT
        if _quote_extent(forms, &first):
            return LEFT
        return _put_binary_value(r, &second) if kind == OF_BINARY else _quote_extent(r, &second)

    cdef bint _is_utf8(self, const Extent *charset) noexcept nogil:
        cdef int i
        for i in range(self._charset_count):
            if self._charsets[i].size == charset.size:
                if memcmp(self._charsets[i].start, charset.start, charset.size) == 0:
                    return True
        return False

    cdef int _put_stated(self, ImageRun *run) except -1:
        """Put out what stands in the name and in the key, which are the same in most records of a table."""
        cdef Py_ssize_t size = sizeof(Py_ssize_t)
        cdef Py_ssize_t named = run.name.size if run.name.start != NULL else -1
        cdef bytes facts, made
        cdef char *at
        if run.name.size + run.key.size > MOST_FACTS:
            return LEFT
        facts = PyBytes_FromStringAndSize(NULL, 2 + size + run.name.size + run.key.size)
        at = PyBytes_AS_STRING(facts)
        at[0], at[1] = <char>run.source, run.key.start != NULL
        memcpy(at + 2, &named, size)
        memcpy(at + 2 + size, run.name.start if run.name.size else <const uint8_t *>at, run.name.size)
        memcpy(at + 2 + size + run.name.size, run.key.start if run.key.size else <const uint8_t *>at, run.key.size)
        made = self._known.get(facts)
        if made is None:
            name = None if run.name.start == NULL else (<const char *>run.name.start)[: run.name.size]
            key = None if run.key.start == NULL else (<const char *>run.key.start)[: run.key.size]
            made = self._stated(run.source, name, key)
            if len(self._known) >= MOST_STATED:
                self._known.clear()
            self._known[facts] = made
        return _put_bytes(run.r, <const uint8_t *>PyBytes_AS_STRING(made), PyBytes_GET_SIZE(made))


cdef Extent _extent_of(bytes text):
    cdef Extent made
    made.start, made.size = <const uint8_t *>PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)
    return made


cdef int _put_one_of(Run *r, const Extent *words, int count, int *index) noexcept nogil:
    """Read an index, and put out the word that it is of."""
    return LEFT if _read_index(r, index) or index[0] >= count else _put_extent(r, &words[index[0]])


cdef int _put_double_value(Run *r) noexcept nogil:
    cdef double value
    if r.end - r.at < 8:
        return LEFT
    memcpy(&value, r.at, 8)
    r.at += 8
    return _render_double(r, value)


cdef int _put_longs(Run *r) noexcept nogil:
    """Put out an array of integers."""
    cdef int64_t count, i, value
    if _read_count(r, &count) or _put(r, 91):
        return LEFT
    for i in range(count):
        if (i and _put(r, 44)) or _read_long(r, &value) or _render_digits(r, value):
            return LEFT
    return LEFT if (count and _read_end(r)) or _put(r, 93) else OK


cdef int _put_fields(ImageRun *run, const Labelled *step) noexcept nogil:
    """Put out the columns with the numbers of their types, and remember them."""
    cdef Run *r = run.r
    cdef Extent text
    cdef ImageColumn *column
    cdef Py_ssize_t before = r.size
    cdef int64_t count, i
    cdef int branch
    cdef uint32_t own
    r.object += 1
    own = r.object
    if _read_index(r, &branch) or branch > 2:
        return LEFT
    if branch == 0:
        return OK
    if branch == 1:
        return LEFT if _put_extent(r, &step.labels[0]) or _take_extent(r, &text) or _quote_extent(r, &text) else OK
    if _read_count(r, &count) or _put_extent(r, &step.labels[1]) or _put(r, 91) or _hold_columns(run, count):
        return LEFT
    for i in range(count):
        column = &run.columns[i]
        if _take_extent(r, &column.name) or _take_int(r, &column.code):
            return LEFT
        if _add_name(r, own, column.name.start, column.name.size) or (i and _put(r, 44)):
            return LEFT
        if _put_bytes(r, <const uint8_t *>b'{"name":', 8) or _quote_extent(r, &column.name):
            return LEFT
        if _put_bytes(r, <const uint8_t *>b',"dataTypeNumber":', 18) or _render_digits(r, column.code) or _put(r, 125):
            return LEFT
    if (count and _read_end(r)) or _put(r, 93):
        return LEFT
    r.size = before if run.is_brief else r.size
    return OK


cdef int _hold_columns(ImageRun *run, int64_t count) noexcept nogil:
    """Make room for columns."""
    if count > run.room:
        free(run.columns)
        run.room = 0
        run.columns = <ImageColumn *>malloc(count * sizeof(ImageColumn))
        if run.columns == NULL:
            return LEFT
        run.room = count
    run.count = count
    return OK


cdef inline bint _may_be_text(const ColumnValue *given) noexcept nogil:
    """Return whether a value begins as JSON or base64 does, or with white space."""
    return not given.size or given.start[0] >= 32 or given.start[0] == 9 or given.start[0] == 10 or given.start[0] == 13


cdef int _put_offset(ImageRun *run) noexcept nogil:
    """Put out the number before the @ of a place; a place of another form says none."""
    cdef const uint8_t *at = run.place.start
    cdef const uint8_t *end = at + run.place.size
    cdef const uint8_t *sign
    cdef const uint8_t *stop
    sign = cdcavro_pass_digits(at, end)
    if sign == at or sign - at > 18 or sign >= end or sign[0] != 64:
        return OK
    stop = cdcavro_pass_digits(sign + 1, end)
    if stop != end or stop == sign + 1 or stop - sign > 19:
        return OK
    if _put_bytes(run.r, <const uint8_t *>b',"offset":', 10):
        return LEFT
    return _render_digits(run.r, <int64_t>cdcavro_whole(at, sign))
