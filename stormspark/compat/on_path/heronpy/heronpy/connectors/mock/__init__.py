"""As in heronpy."""
