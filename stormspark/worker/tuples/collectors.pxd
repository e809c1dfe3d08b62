import cython

from stormspark.acker.ledger cimport Ledger
from stormspark.api cimport tuple_state
from stormspark.api.tuples cimport Tuple
from stormspark.worker.tuples cimport edges
from stormspark.worker.tuples.outlets cimport Outlet

cdef class BoltCollector:
    cdef public object _task
    cdef Ledger _ledger
    cdef dict _outlets
    cdef object _counters
    cdef object _acked_by
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
