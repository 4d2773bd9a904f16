"""Sends events to the addresses that admins name: signed, to checked addresses only, within ten seconds."""
