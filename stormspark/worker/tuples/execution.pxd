import cython

from stormspark.acker.ledger cimport Ledger
from stormspark.acker.tree cimport Branch, Part, SpoutAccount, Tree
from stormspark.api cimport tuple_state
from stormspark.api.tuples cimport Executor, Tuple
from stormspark.spi cimport recycling
from stormspark.worker.tuples cimport edges
from stormspark.worker.tuples.collectors cimport BasicCollector, BoltCollector
from stormspark.worker.tuples.spout_collector cimport SpoutCollector

@cython.locals(account=SpoutAccount, deadline=double, now=double, turn=Py_ssize_t, before=Py_ssize_t, pause_at=Py_ssize_t,
               emitted=bint, call=Py_ssize_t)
cpdef ask_for_tuples(next_tuple, SpoutCollector collector, clock, Py_ssize_t most_pending, calls)

@cython.locals(delivery=tuple, tup=Tuple, branch=Branch, position=Py_ssize_t, unshared=Py_ssize_t)
cpdef execute_basic(list batch, execute, BasicCollector collector, Ledger ledger, runner)

@cython.locals(delivery=tuple, tup=Tuple, position=Py_ssize_t, unshared=Py_ssize_t)
cpdef execute_plain(list batch, execute, held, begun, runner)

@cython.locals(delivery=tuple, tup=Tuple, position=Py_ssize_t, unshared=Py_ssize_t)
cpdef execute_outside(list batch, execute, held, begun, runner)

@cython.locals(delivery=tuple, tup=Tuple, branch=Branch, position=Py_ssize_t, acked=Py_ssize_t, by_collector=bint,
               executor=Executor, unshared=Py_ssize_t)
cpdef execute_automatic(list batch, bolt, BoltCollector collector, held, begun, Ledger ledger, runner)

@cython.locals(taken=Py_ssize_t)
cpdef execute_kept(list batch, bolt, begun, runner)

@cython.locals(one=tuple, ticks=Py_ssize_t)
cpdef ack_kept(given, Ledger ledger, task)
