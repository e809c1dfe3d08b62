"""What topologies import of Storm's Thrift structures; those for Nimbus are not there."""

import storm_thrift
from storm_thrift import ComponentObject, GlobalStreamId, JavaObject, ShellComponent, StreamInfo

__all__ = ["ComponentObject", "GlobalStreamId", "JavaObject", "ShellComponent", "StreamInfo", "storm_thrift"]
