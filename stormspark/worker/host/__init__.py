"""The process that hosts a worker: its requests and replies, its connections, its start and its end."""
