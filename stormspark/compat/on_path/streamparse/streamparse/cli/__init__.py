"""The commands of streamparse. Use those of stormspark: `stormspark run`, `stormspark explain`, `stormspark port`."""
