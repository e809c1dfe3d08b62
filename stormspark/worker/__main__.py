"""The program of a worker process, ``python -m stormspark.worker``. Only `stormspark.worker.host.launch` starts it, and never a
person.
"""

from stormspark.worker.host.process import main

if __name__ == "__main__":
    main()
