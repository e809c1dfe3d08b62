import cython

from stormspark.acker.tree cimport Branch, Part, Tree
from stormspark.api.tuples cimport TupleSource
from stormspark.spi cimport recycling
from stormspark.grouping.key cimport MemoLookup
from stormspark.grouping.text_index cimport text_index

cdef class Outlet:
    cdef public TupleSource source
    cdef public Py_ssize_t width
    cdef public Py_ssize_t emitted
    cdef public Py_ssize_t copies
    cdef dict _by_task

    cpdef list send(self, values, roots)
    cpdef checked(self, values)
    cpdef does_not_fit(self, values)

cdef class _OneCopy(Outlet):
    cdef object _choose
    cdef dict _inboxes
    cdef dict _known
    cdef bint _by_text
    cdef tuple _tasks
    cdef Py_ssize_t _position
    cdef list _returned
    cdef list _inboxes_by_index
    cdef object _only
    cdef list _only_inbox

    @cython.locals(known=dict, inbox=list, branch=Branch, returned=list, tasks=tuple, index=Py_ssize_t)
    cpdef list send(self, values, roots)

cdef class _AllCopies(Outlet):
    cdef list _parts

    @cython.locals(tasks=list, found=list, inbox=list)
    cpdef list send(self, values, roots)

cdef class _NoCopies(_AllCopies):
    cdef object _warn
    cdef bint _warned

cpdef add_edge(roots)
