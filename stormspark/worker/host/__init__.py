"""The process that hosts a worker: its requests and replies, its connections, and how it ends."""
