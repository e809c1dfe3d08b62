"""``python -m stormspark.worker``: a worker process; started by `stormspark.worker.host.launch`, never by hand."""

from stormspark.worker.host.process import main

if __name__ == "__main__":
    main()
