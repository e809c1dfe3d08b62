"""Topologies in packages run, whatever their files import, and whatever the working directory is."""
