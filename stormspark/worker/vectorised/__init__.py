"""The path of record batches, for vectorised components, which work on many rows per call. It runs beside the path of a tuple."""
