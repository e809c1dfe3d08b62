# See ARCHITECTURE.md, "The compiled tuple path": "object" because "packed" alone is a word of Cython's.
cpdef object packed(values)
