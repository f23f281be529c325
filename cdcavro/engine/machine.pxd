# The module is compiled; nothing of it is declared to others.
