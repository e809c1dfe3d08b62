import cython

from stormspark.acker.ledger cimport Ledger
from stormspark.acker.tree cimport SpoutAccount, Tree
from stormspark.api cimport tuple_state
from stormspark.api.tuples cimport Tuple
from stormspark.worker.tuples cimport edges
from stormspark.worker.tuples.outlets cimport Outlet

cdef class SpoutCollector:
    cdef public object _task
    cdef public SpoutAccount _account
    cdef public Ledger _ledger
    cdef public bint _acking
    cdef object _on_ack
    cdef dict _outlets
    cdef bint _told
    cdef public Py_ssize_t emitted
    cdef public bint guarded
    cdef public object new_tree
    cdef public double now
    cdef public Py_ssize_t pause_at
    cdef public object verdict

    @cython.locals(outlet=Outlet, tree=Tree)
    cpdef emit(self, values, stream=*, message_id=*)
    cpdef _begun(self, Tree tree)

cdef class BoltCollector:
    cdef public object _task
    cdef Ledger _ledger
    cdef dict _outlets
    cdef object _counters
    cdef object _held
    cdef public bint guarded

    @cython.locals(outlet=Outlet, anchor=Tuple)
    cpdef emit(self, values, stream=*, anchors=*)
    @cython.locals(plain=Tuple)
    cpdef ack(self, tup)

cdef class BasicCollector:
    cdef object _task
    cdef Ledger _ledger
    cdef dict _outlets
    cdef public object roots
    cdef bint _guarded
    cdef Outlet _usual
    cdef Py_ssize_t _width

    @cython.locals(outlet=Outlet)
    cpdef emit(self, values, stream=*)
