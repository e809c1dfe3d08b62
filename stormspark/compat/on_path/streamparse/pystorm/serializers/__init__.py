"""pystorm's serializers: there is no pipe that they would write to."""
