"""Windowed bolts, and the windows that they keep as state."""
