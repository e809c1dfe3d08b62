"""The package ``petrel``. It has the classes of `stormspark.compat.petrel`, under Petrel's own names."""
