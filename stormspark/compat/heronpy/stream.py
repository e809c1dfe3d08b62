"""heronpy's streams and groupings (A42)."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, ClassVar

from stormspark.compat.heronpy.custom_grouping import ICustomGrouping
from stormspark.compat.heronpy.serializer import default_serializer
from stormspark.errors import InvalidTopologyError
from stormspark.user_line import user_line

__all__ = ["Grouping", "Stream"]


class Stream:
    """An output stream. List it in a component's ``outputs``.

    stormspark accepts direct streams, although heronpy rejects them. A bolt subscribes with ``Grouping.DIRECT``, and the emit
    names the ``direct_task`` (W23).

    >>> Stream(["error_msg"], name="error").stream_id
    'error'
    """

    DEFAULT_STREAM_ID = "default"

    def __init__(
        self, fields: list[str] | tuple[str, ...] | None = None, name: str = "default", direct: bool = False
    ) -> None:
        if fields is not None and not isinstance(fields, list | tuple):
            msg = f"{user_line()}: Stream fields must be a list, tuple or None, given: {fields!r}"
            raise TypeError(msg)
        for field in fields or ():
            if not isinstance(field, str):
                msg = f"{user_line()}: All field names must be strings, given: {field!r}"
                raise TypeError(msg)
        if not isinstance(name, str):
            msg = f"{user_line()}: Stream name must be a string, given: {name!r}"
            raise TypeError(msg)
        if not isinstance(direct, bool):
            msg = f"{user_line()}: 'direct' must be either True or False, given: {direct!r}"
            raise TypeError(msg)
        self.fields = list(fields or ())
        self.stream_id = name
        self.direct = direct


class Grouping:
    """The groupings that ``inputs`` may have. Each has its number in Heron's protocol."""

    SHUFFLE = 1
    ALL = 3
    LOWEST = 4
    NONE = 5
    DIRECT = 6
    FIELDS = namedtuple("FIELDS", "gtype fields")
    CUSTOM = namedtuple("CUSTOM", "gtype python_serialized")
    GLOBAL = LOWEST
    LOCAL_OR_SHUFFLE = SHUFFLE

    _FIELDS: ClassVar[int] = 2
    _CUSTOM: ClassVar[int] = 7

    @classmethod
    def is_grouping_sane(cls, gtype: Any) -> bool:
        """Return whether the grouping can be used in ``inputs``."""
        if isinstance(gtype, cls.FIELDS):
            return gtype.gtype == cls._FIELDS and gtype.fields is not None
        if isinstance(gtype, cls.CUSTOM):
            return gtype.gtype == cls._CUSTOM and gtype.python_serialized is not None
        return gtype in (cls.SHUFFLE, cls.ALL, cls.LOWEST, cls.NONE, cls.DIRECT)

    @classmethod
    def fields(cls, *fields: Any) -> Any:
        """Return a grouping that sends equal values of ``fields`` to the same task. Heron may choose another task (D4)."""
        names = fields[0] if len(fields) == 1 and isinstance(fields[0], list) else list(fields)
        for name in names:
            if not isinstance(name, str):
                msg = f"{user_line()}: Non-string cannot be specified in fields, given: {name!r}"
                raise TypeError(msg)
        if not names:
            msg = f"{user_line()}: List cannot be empty for fields grouping"
            raise InvalidTopologyError(msg)
        return cls.FIELDS(gtype=cls._FIELDS, fields=names)

    @classmethod
    def custom(cls, customgrouper: ICustomGrouping | str) -> Any:
        """Return a grouping that calls an `ICustomGrouping`. Pass an object, or ``"module.Class"`` (D13)."""
        if not isinstance(customgrouper, ICustomGrouping | str):
            msg = (
                f"{user_line()}: Argument to custom() must be ICustomGrouping instance or classpath, given: "
                f"{customgrouper!r}"
            )
            raise TypeError(msg)
        return cls.custom_serialized(default_serializer.serialize(customgrouper), is_java=False)

    @classmethod
    def custom_serialized(cls, serialized: bytes, is_java: bool = True) -> Any:
        """Return a custom grouping from its pickled bytes. A grouping in Java is rejected."""
        if not isinstance(serialized, bytes):
            msg = (
                f"{user_line()}: Argument to custom_serialized() must be a serialized Python class as bytes, given: "
                f"{serialized!r}"
            )
            raise TypeError(msg)
        if is_java:
            msg = (
                f"{user_line()}: Custom grouping implemented in Java for Python topology is not supported: write it as an "
                f"ICustomGrouping, for Grouping.custom()"
            )
            raise NotImplementedError(msg)
        return cls.CUSTOM(gtype=cls._CUSTOM, python_serialized=serialized)

    @classmethod
    def custom_object(cls, java_class_name: str, arg_list: Any) -> Any:
        """Raise NotImplementedError: groupings in Java are not supported."""
        msg = (
            f"{user_line()}: custom_object({java_class_name!r}) names a class in Java: write it as an ICustomGrouping, "
            f"for Grouping.custom()"
        )
        raise NotImplementedError(msg)
