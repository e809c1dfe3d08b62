"""The base classes of specs."""

from stormspark.compat.streamparse.specs import ComponentSpec, JavaComponentSpec, ShellComponentSpec

__all__ = ["ComponentSpec", "JavaComponentSpec", "ShellComponentSpec"]
