"""Programs for developers that are neither tests nor benchmarks."""
