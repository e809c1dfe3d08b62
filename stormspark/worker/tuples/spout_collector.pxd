import cython

from stormspark.acker.ledger cimport Ledger
from stormspark.acker.tree cimport SpoutAccount, Tree
from stormspark.worker.tuples cimport edges
from stormspark.worker.tuples.outlets cimport Outlet

cdef class SpoutCollector:
    cdef public object _task
    cdef public SpoutAccount _account
    cdef public Ledger _ledger
    cdef public bint _acking
    cdef object _on_ack
    cdef dict _outlets
    cdef bint _warned
    cdef public Py_ssize_t emitted
    cdef public bint guarded
    cdef public object new_tree
    cdef public double now
    cdef public Py_ssize_t pause_at
    cdef public object verdict

    @cython.locals(outlet=Outlet, tree=Tree)
    cpdef emit(self, values, stream=*, message_id=*)
    cpdef _begun(self, Tree tree)
