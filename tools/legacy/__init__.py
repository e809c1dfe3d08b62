"""``make legacy``: tries the topologies in a folder of other people's projects, and prints what became of each.

projects    the topologies of a checkout, as `stormspark port` finds them
trials      plans and runs one of them by the command line, in a process of its own that has a limit
gallery     the table, and the same as JSON
"""
