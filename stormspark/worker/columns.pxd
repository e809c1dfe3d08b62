cpdef object packed(values)
