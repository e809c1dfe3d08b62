"""``python -m stormspark``: the program ``stormspark``, for places where it is not on the path."""

from stormspark.cli import main

if __name__ == "__main__":
    main(prog_name="stormspark")
