"""The files and tables that must survive a restart of a topology, and the order in which they are written."""
