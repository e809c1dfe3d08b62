"""Runs topologies that were written for streamparse, pystorm, heronpy and Petrel, unmodified (A-5, A-6)."""
