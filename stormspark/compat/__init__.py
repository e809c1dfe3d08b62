"""Runs topologies that were written for streamparse, pystorm and heronpy, unmodified (A-5, A-6)."""
