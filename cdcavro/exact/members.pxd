from cdcavro.exact.numbers cimport plain_text

cpdef text_or_none(object value)
cpdef tuple member_names(object value)
cpdef dict given(dict record)
