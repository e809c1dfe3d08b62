"""The parts of a spout's task: its life, its calls, its allowance per round, and the verdicts that it gets."""
