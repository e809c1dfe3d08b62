"""Stand-ins for pystorm's serializers, which can't be used: there is no pipe here."""
