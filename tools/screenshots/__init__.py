"""Pictures of the web page for the documentation."""
