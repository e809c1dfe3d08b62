# The C fields of the objects in tree.py, beside it, for the compiler. See docs/decisions.md, "One source, plain or compiled".

cdef class SpoutAccount:
    cdef public object task
    cdef public Py_ssize_t pending
    cdef public Py_ssize_t attempt
    cdef public list ended

cdef class Branch:
    cdef public Py_ssize_t count
    cdef public unsigned long long value
    cdef public unsigned long long root_id
    cdef public Py_ssize_t mark
    cdef public Py_ssize_t place
    cdef public object verdict

cdef class Tree(Branch):
    cdef public SpoutAccount account
    cdef public Py_ssize_t attempt
    cdef public dict bucket
    cdef public double emitted_at
    cdef public object message_id

cdef class Part(Branch):
    cdef public object home
