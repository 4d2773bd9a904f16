"""Events for other systems, kept in order until all receivers have them."""
