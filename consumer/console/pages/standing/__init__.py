"""Pages and parts of pages about standing decisions."""
