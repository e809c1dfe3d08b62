# See docs/decisions.md, "One source, plain or compiled": "object" because "packed" alone is a word of Cython's.
cpdef object packed(values)
