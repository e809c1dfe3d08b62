# The C version of `close_edges` in edges.py. Compiled modules use it, and the C compiler puts it into each loop that calls it.

from stormspark.acker.ledger cimport Ledger
from stormspark.acker.tree cimport Branch, Part, Tree


cdef inline int close_edges(Ledger ledger, roots) except -1:
    cdef Branch branch
    kind = type(roots)
    # `branch.count` is the C field, so only an exact type may come here: a traced tree has a property of that name.
    if kind is Tree or kind is Part:
        branch = <Branch> roots
        branch.count -= 1
        if not branch.count:
            ledger.drained(branch)
    elif isinstance(roots, tuple):
        for one in <tuple> roots:
            one.count -= 1
            if not one.count:
                ledger.drained(one)
    elif roots is not None:
        roots.count -= 1
        if not roots.count:
            ledger.drained(roots)
    return 0
