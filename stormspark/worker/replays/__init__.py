"""Replays: the inputs of a task in one batch are recorded, and can be executed again."""
