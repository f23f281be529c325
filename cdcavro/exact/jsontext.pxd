from cdcavro.exact.numbers cimport ExactNumber

cpdef bytes to_bytes(object text)
cpdef bytes render(object value)
cpdef str kind(object value)
cpdef str escape(str name)
