import cython

from stormspark.acker.ledger cimport Ledger
from stormspark.acker.tree cimport Branch, Part, Tree

cdef class Lanes:
    cdef public object worker
    cdef public Ledger _ledger
    cdef object _complain
    cdef public dict _lanes
    cdef public object _streams

    @cython.locals(mark=Py_ssize_t, place=Py_ssize_t, branch=Branch, delivery=tuple, run=list, numbers=list, branches=list, counts=list)
    cpdef _trees_of_ones(self, list runs)
