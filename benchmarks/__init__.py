"""Performance: ratios measured in one run, never asserted in timed tests."""
