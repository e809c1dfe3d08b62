"""What people watch while a topology runs: the progress line and the table at the end."""
