import cython

from stormspark.api.tuples cimport Tuple, TupleSource

cdef class Passage:
    cdef object _bolt
    cdef object _surroundings
    cdef bint _acks
    cdef bint _ack_now
    cdef bint _anchor_now
    cdef bint _looks
    cdef bint _asked
    cdef frozenset _plain
    cdef TupleSource _last
    cdef object _kind
    cdef bint _shared
    cdef object _source_of
    cdef public object tup
    cdef public object batch
    cdef public dict lines

    cpdef has_id(self, tup, id)
    @cython.locals(values=tuple, at=Tuple, line=tuple)
    cpdef emit(self, tup, stream=*, anchors=*, direct_task=*, need_task_ids=*)
    @cython.locals(arrived=Tuple, source=TupleSource, ticks=bint)
    cpdef execute(self, tup)
