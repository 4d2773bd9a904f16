"""To another store or other settings without a gap, with the verdicts that were sent."""
