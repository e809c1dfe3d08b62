"""The structures of Storm's Thrift interface that topologies import. The structures for Nimbus are left out."""

from stormspark.compat.streamparse.groupings import ChosenGrouping as Grouping
from stormspark.compat.streamparse.java import ComponentObject, JavaObject, ShellComponent
from stormspark.compat.streamparse.streams import GlobalStreamId, StreamInfo

__all__ = ["ComponentObject", "GlobalStreamId", "Grouping", "JavaObject", "ShellComponent", "StreamInfo"]
