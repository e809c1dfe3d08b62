"""``python -m stormspark.worker``: a worker process; started by `stormspark.worker.launch`, never by hand."""

from stormspark.worker.process import main

if __name__ == "__main__":
    main()
