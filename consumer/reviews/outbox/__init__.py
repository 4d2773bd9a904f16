"""Events for other systems, in the order in which they happened, until everybody has them."""
