import cython

from stormspark.acker.tree cimport Branch, Part, SpoutAccount, Tree

cdef class Ledger:
    cdef public object worker
    cdef public dict parts_to_send
    cdef public Py_ssize_t frames
    cdef public list wanted_stories
    cdef public object moving
    cdef object _trace
    cdef object _edge_ids
    cdef object _timeout
    cdef public dict _newest
    cdef public object _closed
    cdef object _period
    cdef object _rotated_at
    cdef object _parts_rotated_at
    cdef public dict _outside
    cdef public dict _parts
    cdef public dict _older_parts
    cdef public dict _forgotten_parts

    cpdef begin(self, Tree tree)
    cpdef drained(self, Branch branch)
    @cython.locals(account=SpoutAccount)
    cpdef _end(self, Tree tree, verdict)
    cdef _parts_for(self, home)
    @cython.locals(one=Tree, outside=dict, place=Py_ssize_t, roots=cython.ulonglong[::1], values=cython.ulonglong[::1])
    cpdef take_parts(self, parts)
    @cython.locals(
        tree=Tree, known=Branch, place=Py_ssize_t, new=Py_ssize_t, root=cython.ulonglong, homes=cython.int[::1],
        roots=cython.ulonglong[::1], edges=cython.ulonglong[::1], ids=cython.ulonglong[::1],
    )
    cpdef hand_out(self, list branches, list counts)
    @cython.locals(
        known=Branch, outside=dict, parts=dict, older=dict, here=cython.int, place=Py_ssize_t, home=cython.int,
        root=cython.ulonglong, edge=cython.ulonglong, count=cython.ulong, homes=cython.int[::1],
        roots=cython.ulonglong[::1], values=cython.ulonglong[::1], counts=cython.ulong[::1],
    )
    cpdef receive(self, edges)
