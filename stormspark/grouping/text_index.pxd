import cython

# In C the total has 32 bits, so it wraps by itself.
@cython.locals(total=cython.uint, unit=cython.longlong, low=cython.longlong, sign=cython.longlong, character=cython.Py_UCS4)
cpdef Py_ssize_t text_index(str text, Py_ssize_t targets) except -1
