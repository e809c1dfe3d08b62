"""What the product promises: whatever dies, every message has its effect at least once.

One topology over Kafka (`topology`) runs in a process of its own (`driver`), which a scenario starts, feeds, hurts and counts
(`scenario`, `injectors`, `check`).
"""
