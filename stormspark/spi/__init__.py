"""The kinds of components that front-ends make and the engine runs, and that users never see.

A front-end (streamparse, multilang, the transactional API, a connector) turns its user's code into components. These may be of
the kinds of `stormspark.api`, or of the kinds in the first four of the following modules:

    automatic      bolts whose tuples are acked when ``execute`` returns
    outside        components that have work in progress outside of their worker
    batches        components that know the current batch
    range_spout    spouts whose tasks read ranges of a source themselves
    recycling      no kind: reuses objects of the tuple path (`stormspark.tuple_path`) that nobody kept

The package is on the layer right above `stormspark.api`, because its classes extend `Bolt` and `SourceSpout` and receive `Tuple`.
So ``api`` imports nothing from it. The two modules that ``api`` and the front-ends share are below ``api``:
`stormspark.user_line` and `stormspark.pickling`. One class, `BatchAware`, is split over both layers. Its base class is in
`stormspark.api.batch_kind`, because the declaration of a component says how the component is told of batches.
"""

from stormspark.spi.automatic import ACK, AutoAckBolt, Line, Send, Sender
from stormspark.spi.batches import COMMIT, FINISH, BatchAware, TransactionAttempt
from stormspark.spi.outside import Given, KeepsOutside, LivesOutside, WorksOutside
from stormspark.spi.range_spout import RangeSpout

__all__ = [
    "ACK",
    "COMMIT",
    "FINISH",
    "AutoAckBolt",
    "BatchAware",
    "Given",
    "KeepsOutside",
    "Line",
    "LivesOutside",
    "RangeSpout",
    "Send",
    "Sender",
    "TransactionAttempt",
    "WorksOutside",
]
