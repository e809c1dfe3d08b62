"""Components in any language, which run as child processes that speak Storm's multilang protocol (I1-I18).

shell_bolt, shell_spout    the components, on top of `component`
conversation, handshake    the protocol
messages                   its encodings: JSON lines and msgpack
answers                    answers to emits, sent before the child needs them
child, reaper              the process: its pipes, its signs of life, and how it ends with its worker
"""

from stormspark.multilang.shell_bolt import ShellBolt
from stormspark.multilang.shell_spout import ShellSpout

__all__ = ["ShellBolt", "ShellSpout"]
