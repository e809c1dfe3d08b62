"""Windowed bolts, and their windows as state."""
