"""The path of a tuple: collectors, outlets, lanes, and loops that execute. Most of it is compiled (`stormspark.tuple_path`)."""
