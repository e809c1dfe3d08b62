"""Tools to test topologies."""
