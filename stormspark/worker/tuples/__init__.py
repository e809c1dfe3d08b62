"""The path of a tuple: collectors, outlets, lanes, and the loops that execute. Most is compiled (`stormspark.tuple_path`)."""
