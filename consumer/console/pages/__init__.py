"""The pages of the console, with the routes of each."""
