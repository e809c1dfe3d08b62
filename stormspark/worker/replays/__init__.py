"""Replays. A worker records the inputs of a task in a batch, and these inputs can be executed again."""
