"""The extensions of streamparse for fabric and invoke, of which components use only `util`."""
