"""The moderators' console: pages on which people look at flags and decide. Alone imports Jinja2 and Babel."""
