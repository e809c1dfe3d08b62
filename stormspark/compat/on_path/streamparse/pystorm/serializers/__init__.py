"""Stand-ins for pystorm's serializers. They can't be used, because no pipe leads from stormspark to a component."""
