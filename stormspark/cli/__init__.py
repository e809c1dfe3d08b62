"""The command line: stormspark run, stormspark explain."""
