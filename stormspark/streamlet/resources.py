"""`Resources` says how many CPUs and how much memory a container requests (G24)."""

from __future__ import annotations

from typing import Self

__all__ = ["Resources"]

_MB = 1024 * 1024


class Resources:
    """CPUs and memory of a container.

    >>> Resources().set_cpu(2).set_ram_in_gb(1)
    Resource {cpu: 2.0, ram: 1073741824}
    """

    def __init__(self) -> None:
        self._cpu = 0.0
        self._ram = 0

    def set_cpu(self, cpu: float) -> Self:
        """Set the number of CPUs."""
        self._cpu = float(cpu)
        return self

    def set_ram(self, ram: int) -> Self:
        """Set the memory in bytes."""
        self._ram = int(ram)
        return self

    def set_ram_in_mb(self, ram: float) -> Self:
        """Set the memory in megabytes."""
        return self.set_ram(int(ram * _MB))

    def set_ram_in_gb(self, ram: float) -> Self:
        """Set the memory in gigabytes."""
        return self.set_ram(int(ram * 1024 * _MB))

    def get_cpu(self) -> float:
        """Return the number of CPUs."""
        return self._cpu

    def get_ram(self) -> int:
        """Return the memory in bytes."""
        return self._ram

    def __repr__(self) -> str:
        return f"Resource {{cpu: {self._cpu}, ram: {self._ram}}}"
