"""Petrel."""
