"""``dupwatch top``: scrapes the metrics of running consumers and sums them up. How it looks is in ``cli.top_view``."""
