# The module compiles as it stands.
