"""``dupwatch top``: what the pages of running consumers say, from one look to the next."""
