"""Backpressure shown on the real thing: worker processes, Spark, Kafka, and bolts that can't keep up.

``BACKPRESSURE_SECS`` makes the short forms long ones: so many seconds each, with stricter figures. What is measured is printed at
the end of the run and written to ``build/backpressure``.
"""
