"""What stands for com.acme's classes; `acme_orders` is where they are."""

from stormspark import flux

for name in ("Region", "OrderSpout", "RouteBolt", "SumBolt", "FileBolt", "BySize", "MarkHook", "Orders"):
    flux.register(f"com.acme.orders.{name}", f"acme_orders.{name}")
