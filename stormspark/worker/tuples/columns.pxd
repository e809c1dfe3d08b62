# See ARCHITECTURE.md, "The compiled tuple path": "object" because "packed" alone is a keyword of Cython.
cpdef object packed(values)
