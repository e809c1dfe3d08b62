"""The program ``python -m stormspark.worker``: a worker process. `stormspark.worker.host.launch` starts it, never a person."""

from stormspark.worker.host.process import main

if __name__ == "__main__":
    main()
