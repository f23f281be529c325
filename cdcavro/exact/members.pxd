from cdcavro.wire.writing.values cimport plain_text

cpdef scalar_text(object value)
cpdef tuple names_of(object value)
cpdef dict given(dict record)
