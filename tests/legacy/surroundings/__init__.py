"""What projects find around them: their packages, their working directory, and a place for what they log and print."""
