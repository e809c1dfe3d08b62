# The constants of tuple_state.py for compiled modules, which import both: `tuple_state.OPEN` is then a number in C.
cdef enum:
    OPEN = 0
    SETTLED = 1
    HELD = 2
