"""Random topologies, on every engine and on a model of a few lines."""
