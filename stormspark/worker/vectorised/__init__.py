"""The path of record batches through a worker. It exists beside the path of a tuple, for vectorised components, which work on
many rows per call.
"""
