"""Components in any language, over Storm's multilang protocol (I1-I18).

shell_bolt, shell_spout    the components; `component` is what they share
conversation, handshake    what is said
messages                   how it is written: JSON lines, msgpack
child, reaper              the process: pipes, signs of life, no orphans
"""

from stormspark.multilang.shell_bolt import ShellBolt
from stormspark.multilang.shell_spout import ShellSpout

__all__ = ["ShellBolt", "ShellSpout"]
