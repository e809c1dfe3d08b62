"""The path of record batches, for components that work on whole batches of rows; beside the path of a tuple."""
