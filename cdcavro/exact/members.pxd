from cdcavro.exact.numbers cimport plain_text

cpdef scalar_text(object value)
cpdef tuple names_of(object value)
cpdef dict given(dict record)
