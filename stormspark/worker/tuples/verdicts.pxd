import cython

from stormspark.acker.tree cimport Tree

@cython.locals(place=Py_ssize_t, end=Py_ssize_t, tree=Tree)
cpdef deliver_acks(list ended, Py_ssize_t begin, Py_ssize_t most, ack, double now, list latencies)
