cpdef scalar_text(object value)
