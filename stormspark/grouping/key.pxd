cdef class MemoLookup:
    cdef object _memo
    cdef object _fields
    cdef object _context
    cdef object _key_of
    cdef public Py_ssize_t position
    cdef public dict known
    cdef public tuple tasks_of_texts

    cdef object _compute(self, values)
