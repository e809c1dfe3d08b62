"""The structures of Storm's Thrift interface that topologies import. The structures for Nimbus are left out."""

import storm_thrift
from storm_thrift import ComponentObject, GlobalStreamId, JavaObject, ShellComponent, StreamInfo

__all__ = ["ComponentObject", "GlobalStreamId", "JavaObject", "ShellComponent", "StreamInfo", "storm_thrift"]
