"""Converts a topology of streamparse to the data of a Flux file (A38)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stormspark.compat.streamparse.errors import SpecTypeError
from stormspark.compat.streamparse.groupings import ChosenGrouping
from stormspark.compat.streamparse.specs import ComponentSpec
from stormspark.user_line import user_line

__all__ = ["flux_dict"]

_WRAPPERS = {
    "bolt": "org.apache.storm.flux.wrappers.bolts.FluxShellBolt",
    "spout": "org.apache.storm.flux.wrappers.spouts.FluxShellSpout",
}


def flux_dict(name: str, specs: Iterable[ComponentSpec]) -> dict[str, Any]:
    """Return the topology ``name`` as plain data. Raises TypeError for anything that Flux can't express."""
    written: dict[str, Any] = {"name": name, "bolts": [], "spouts": [], "streams": []}
    for spec in specs:
        written[f"{spec.kind}s"].append(_component(spec))
        written["streams"].extend(
            {
                "from": source.componentId,
                "to": spec.name,
                "grouping": _grouping(spec, source.streamId, grouping),
            }
            for source, grouping in spec.inputs.items()
        )
    return {key: value for key, value in written.items() if value}


def _component(spec: ComponentSpec) -> dict[str, Any]:
    shell, java = spec.component_object.shell, spec.component_object.java_object
    if java is not None:
        return {"id": spec.name, "className": java.full_class_name, "constructorArgs": list(java.args_list)}
    if shell is None:
        what = (
            "a serialized Java object"
            if spec.component_object.serialized_java
            else "a component of stormspark"
        )
        raise _can_not_be_written(spec, what)
    default = spec.outputs.get("default")
    # Flux's constructors want fields for the default stream. So a component without any stream gets a field that is made up.
    fields = default.output_fields if default is not None else []
    arguments: list[Any] = [[shell.execution_command, shell.script]]
    if fields or not spec.outputs:
        arguments.append(fields or ["NONE_BUT_FLUX_WANTS_SOMETHING_HERE"])
    methods: list[dict[str, Any]] = [
        {"name": "setNamedStream", "args": [stream, info.output_fields]}
        for stream, info in spec.outputs.items()
        if stream != "default"
    ]
    methods += [{"name": "addComponentConfig", "args": [key, value]} for key, value in spec.config.items()]
    return {
        "id": spec.name,
        "className": _WRAPPERS[spec.kind],
        "constructorArgs": arguments,
        "configMethods": methods,
        "parallelism": spec.par,
    }


def _grouping(spec: ComponentSpec, stream: str | None, grouping: Any) -> dict[str, Any]:
    if not isinstance(grouping, ChosenGrouping) or grouping.custom_serialized is not None:
        raise _can_not_be_written(spec, f"the grouping {grouping!r}")
    written: dict[str, Any] = {"streamId": stream, "type": grouping.kind.upper()}
    if grouping.custom_object is not None:
        java = grouping.custom_object
        written["type"] = "CUSTOM"
        written["customClass"] = {"className": java.full_class_name, "constructorArgs": list(java.args_list)}
    elif grouping.fields:
        written["args"] = grouping.fields
    elif grouping.fields is not None:
        written["type"] = "GLOBAL"
    return written


def _can_not_be_written(spec: ComponentSpec, what: str) -> SpecTypeError:
    return SpecTypeError(
        f"{user_line()}: Flux can't say {what}, which {spec.name!r} (declared at {spec.declared_at}) has"
    )
