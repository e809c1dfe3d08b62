"""Stories: the recordings of trees, and the search for the tasks that have not acked a tree that failed."""
