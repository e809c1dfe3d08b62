cdef extern from *:
    """
    /* Reuses a tuple as zip() does, for a subclass of tuple. From 3.14 on tuples cache their hash, so a new one is made. */
    static CYTHON_INLINE PyObject *stormspark_refilled(PyObject *kind, PyObject *last, PyObject *values) {
    #if PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
        if (Py_REFCNT(last) == 2 && (PyObject *)Py_TYPE(last) == kind && kind != (PyObject *)&PyTuple_Type
            && PyTuple_CheckExact(values) && PyTuple_GET_SIZE(last) == PyTuple_GET_SIZE(values)) {
            Py_ssize_t at, size = PyTuple_GET_SIZE(values);
            Py_INCREF(last);
            for (at = 0; at < size; at++) {
                PyObject *before = PyTuple_GET_ITEM(last, at), *value = PyTuple_GET_ITEM(values, at);
                Py_INCREF(value);
                PyTuple_SET_ITEM(last, at, value);
                Py_DECREF(before);
            }
            return last;
        }
    #endif
        return PyObject_CallFunctionObjArgs(kind, values, NULL);
    }
    """
    Py_ssize_t refcount "Py_REFCNT" (object thing)
    object refilled "stormspark_refilled" (object kind, object last, object values)
