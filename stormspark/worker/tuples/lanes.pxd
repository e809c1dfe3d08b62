import cython

from stormspark.acker.ledger cimport Ledger
from stormspark.acker.tree cimport Branch, Part, Tree

cdef class Lanes:
    cdef public object worker
    cdef public Ledger _ledger
    cdef object _fail
    cdef public dict _lanes
    cdef public object _streams
    cdef public dict _of_sender
    cdef public dict _seen
    cdef public Py_ssize_t tuples
    cdef public Py_ssize_t bytes
    cdef Py_ssize_t _frame_bytes
    cdef Py_ssize_t _most_bytes
    cdef Py_ssize_t _learned
    cdef Py_ssize_t _looks

    @cython.locals(lane=list, lanes=list, count=Py_ssize_t, waiting=Py_ssize_t, before=Py_ssize_t, before_bytes=Py_ssize_t)
    cpdef is_full(self, Py_ssize_t tuples, Py_ssize_t size, sender=*)

    @cython.locals(
        mark=Py_ssize_t, place=Py_ssize_t, branch=Branch, delivery=tuple, run=list, number=Py_ssize_t, numbers=cython.uint[::1],
        branches=list, counts=list,
    )
    cpdef _trees_of_ones(self, list runs)
