"""Operates running topologies from outside of their drivers: states as in Storm, and a REST API with Storm's calls.

Each driver serves the API on a Unix socket that only its user can open. `registry` finds the drivers of a user on this host,
`client` asks one of them, and `server` answers in the driver.
"""
