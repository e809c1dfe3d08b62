"""As in heronpy."""

from stormspark.compat.heronpy.serializer import IHeronSerializer, PythonSerializer, default_serializer

__all__ = ["IHeronSerializer", "PythonSerializer", "default_serializer"]
