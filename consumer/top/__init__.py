"""``dupwatch top``: scrapes the metrics of running consumers and computes rates. ``cli.top_view`` shows them."""
