"""What must survive a restart of a topology, and in which order it is written."""
