"""Components in any language, which run as child processes that speak Storm's multilang protocol (I1-I18).

shell_bolt, shell_spout    the components, on top of `component`
conversation, handshake    the protocol
messages                   the protocol's encodings: JSON lines and msgpack
answers                    finds out whether answers to emits may be sent before the child needs them
child, reaper              the child process: its pipes, its signs of life, and its end
"""

from stormspark.multilang.shell_bolt import ShellBolt
from stormspark.multilang.shell_spout import ShellSpout

__all__ = ["ShellBolt", "ShellSpout"]
