import cython

from stormspark.acker.ledger cimport Ledger
from stormspark.acker.tree cimport Branch, Part, Tree
from stormspark.api.tuples cimport Tuple
from stormspark.worker.collectors cimport BasicCollector, BoltCollector

@cython.locals(delivery=tuple, tup=Tuple, branch=Branch, position=Py_ssize_t)
cpdef execute_basic(list batch, execute, BasicCollector collector, Ledger ledger, task)

@cython.locals(delivery=tuple, tup=Tuple, position=Py_ssize_t, state=int)
cpdef execute_plain(list batch, execute, held, begun, task)

@cython.locals(delivery=tuple, tup=Tuple, position=Py_ssize_t)
cpdef execute_outside(list batch, execute, held, begun, task)

@cython.locals(delivery=tuple, tup=Tuple, branch=Branch, position=Py_ssize_t, acked=Py_ssize_t, hooks=bint)
cpdef execute_automatic(list batch, bolt, BoltCollector collector, held, begun, Ledger ledger, task)

@cython.locals(taken=Py_ssize_t)
cpdef execute_kept(list batch, bolt, begun, task)

@cython.locals(one=tuple, branch=Branch, ticks=Py_ssize_t)
cpdef ack_kept(given, Ledger ledger, task)
