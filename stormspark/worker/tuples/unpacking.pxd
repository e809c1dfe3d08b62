import cython

@cython.locals(place=Py_ssize_t, numbers=cython.uint[::1])
cdef _arrive(list inbox, list column, source, list trees, reference)
