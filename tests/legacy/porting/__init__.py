"""Reading legacy projects."""
