"""Stories of trees. This package records what happens to trees, and finds the tasks that have not acked a failed tree."""
