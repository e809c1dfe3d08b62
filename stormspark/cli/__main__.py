"""``python -m stormspark.cli``, for places where the ``stormspark`` script is not on the path."""

from stormspark.cli import main

main(prog_name="stormspark")
