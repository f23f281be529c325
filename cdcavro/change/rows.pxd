cpdef check_repeated(object rows, Py_ssize_t length)
