"""Looking things up: an article, what a text would repeat, and a copy that was missed."""
