# The return type is written out, because "packed" alone is a keyword of Cython (docs/decisions.md, "One source, plain or
# compiled").
cpdef object packed(values)
