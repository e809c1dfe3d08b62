"""The structures of Storm's Thrift that topologies import. Those for Nimbus are left out."""

import storm_thrift
from storm_thrift import ComponentObject, GlobalStreamId, JavaObject, ShellComponent, StreamInfo

__all__ = ["ComponentObject", "GlobalStreamId", "JavaObject", "ShellComponent", "StreamInfo", "storm_thrift"]
