"""Topologies as YAML: Storm's Flux (K13-K23)."""
