"""``python -m stormspark.cli``, which is the same as ``python -m stormspark``."""

from stormspark.cli import main

main(prog_name="stormspark")
