"""What runs dupwatch and the servers it needs."""
