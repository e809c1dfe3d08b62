import cython

from stormspark.api.tuples cimport Executor, Tuple, TupleSource
from stormspark.spi cimport recycling
from stormspark.worker.tuples.spout_collector cimport SpoutCollector
from stormspark.worker.tuples.outlets cimport Outlet

cdef class Passage(Executor):
    cdef object _bolt
    cdef object _surroundings
    cdef bint _acks
    cdef bint _ack_now
    cdef bint _anchor_now
    cdef bint _looks
    cdef bint _asked
    cdef TupleSource _last
    cdef object _kind
    cdef bint _shared
    cdef object _source_of
    cdef public object tup
    cdef public object batch
    cdef public dict lines
    cdef public Outlet line
    cdef object _values

    cpdef has_id(self, tup, id)
    @cython.locals(values=tuple, at=Tuple, line=Outlet)
    cpdef emit(self, tup, stream=*, anchors=*, direct_task=*, need_task_ids=*)
    @cython.locals(arrived=Tuple, source=TupleSource, values=tuple)
    cpdef execute(self, tup)

cdef class SpoutPassage:
    cdef object _collector
    cdef SpoutCollector _native

    @cython.locals(values=tuple)
    cpdef emit(self, tup, tup_id=*, stream=*, direct_task=*, need_task_ids=*)

cdef tuple _sent(tup)
cdef tuple _unshared(tuple values)
