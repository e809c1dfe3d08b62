"""Windowed bolts, and the windows that they store as state."""
