# "object" is written out, because "packed" alone is a keyword of Cython; see "One source, plain or compiled" in decisions.md.
cpdef object packed(values)
