# The module compiles as it stands.
cpdef scalar_text(object value)
