"""The moderators' console: pages on which people review flags. The only package that imports Jinja2 and Babel."""
