"""Stand-ins for pystorm's serializers. They can't be used, because stormspark has no pipe to a component."""
