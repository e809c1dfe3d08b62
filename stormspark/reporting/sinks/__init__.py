"""The stock reporters, a module each: console, CSV, Graphite, StatsD, OpenTelemetry."""
