from stormspark.api cimport tuple_state

cdef class TupleSource:
    cdef public str component
    cdef public object task
    cdef public str stream
    cdef public object fields
    cdef public dict index

cdef class Tuple:
    cdef object __weakref__
    cdef public object values
    cdef public TupleSource _source
    cdef public object roots
    cdef public int state

cdef class Executor:
    cpdef execute(self, tup)
