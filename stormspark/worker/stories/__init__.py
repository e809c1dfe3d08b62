"""Stories: the recordings of trees, and the search for who has not acked a tree that failed."""
