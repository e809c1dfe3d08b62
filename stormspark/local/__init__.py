"""The local engine: the same worker core in one process, no Java, a clock that tests can drive."""
