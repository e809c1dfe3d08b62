"""Planning, which turns a declared topology into a physical plan. `stormspark.plan.phases` lists its phases in order."""

from stormspark.plan.advice import advice, log_advice
from stormspark.plan.explain import explain_mermaid, explain_text
from stormspark.plan.phases import plan_by_phases, plan_topology
from stormspark.plan.physical import ComponentPlan, EdgePlan, PhysicalPlan, StreamPlan, TaskPlan

__all__ = [
    "ComponentPlan",
    "EdgePlan",
    "PhysicalPlan",
    "StreamPlan",
    "TaskPlan",
    "advice",
    "explain_mermaid",
    "explain_text",
    "log_advice",
    "plan_by_phases",
    "plan_topology",
]
