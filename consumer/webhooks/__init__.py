"""Sends events to the URLs that admins enter: signed, to checked IP addresses only, and within ten seconds."""
