"""The module ``heronpy.api.serializer``, which re-exports names of `stormspark.compat.heronpy.serializer`."""

from stormspark.compat.heronpy.serializer import IHeronSerializer, PythonSerializer, default_serializer

__all__ = ["IHeronSerializer", "PythonSerializer", "default_serializer"]
