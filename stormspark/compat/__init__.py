"""Topologies that were written for streamparse, pystorm and heronpy run as they are (A-5, A-6)."""
