"""The path of a tuple: collectors, outlets, lanes, and the loops that execute tuples. Most of it is compiled
(`stormspark.tuple_path`).
"""
