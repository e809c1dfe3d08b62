# See docs/decisions.md, "One source, plain or compiled": "object" because "packed" alone is a keyword of Cython.
cpdef object packed(values)
