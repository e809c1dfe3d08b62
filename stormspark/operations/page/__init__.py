"""The web page of a topology: what it is told, the history of that, and its files."""
