"""What a topology on Spark has from its start to its end, however often it is laid out anew."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from stormspark.driver.event_sampling import EventSampling
from stormspark.driver.tally import Tally
from stormspark.spark.checkpoint_folder import CheckpointFolder
from stormspark.spark.executors import Executors
from stormspark.spark.feedback import Feedback
from stormspark.spark.fence import Fence
from stormspark.spark.network import Network
from stormspark.spark.preflight import Preflight
from stormspark.spark.query_session import QuerySession
from stormspark.spark.trigger_limits import TriggerLimits

__all__ = ["Premises"]


@dataclass(frozen=True)
class Premises:
    """The premises of one topology in one driver.

    ``session`` is for stormspark's own reads and writes, ``shared_session`` for the query. ``scratch`` is a folder of this
    driver's own. ``is_kept`` says whether the user has named the checkpoint ``folder``.
    """

    session: SparkSession
    shared_session: QuerySession
    scratch: Path
    folder: CheckpointFolder
    is_kept: bool
    network: Network
    fence: Fence
    executors: Executors
    preflight: Preflight
    feedback: Feedback
    limits: TriggerLimits
    tally: Tally
    sampling: EventSampling
    storm_id: str
    log_folder: str
    available_now: bool
    #: Set when the supervisor has something to do.
    wake: threading.Event
    #: Set when the next batch should begin without a pause.
    stirred: threading.Event
    #: Set when the topology ends at once, and its workers close nothing.
    killed: threading.Event
