import cython

# Wide enough that 31 times 32 bits do not overflow, and that the last subtraction has a sign.
@cython.locals(total=cython.longlong, unit=cython.longlong, character=cython.Py_UCS4)
cpdef Py_ssize_t text_index(str text, Py_ssize_t targets) except -1
