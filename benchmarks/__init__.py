"""Speed against peers, and quality on labelled pairs."""
