"""Print what the bolt ``count`` has counted: how many numbers, and their sum. The argument is the checkpoint.

It needs no Spark: delta-rs reads the state table in HDFS and in S3, too, although Spark has written the one in HDFS.
"""

import sys

import stormspark

rows = list(stormspark.state(sys.argv[1], "count")["value"])
print("counted", sum(count for count, _ in rows), "sum", sum(sum_ for _, sum_ in rows), flush=True)
