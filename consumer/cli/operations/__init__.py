"""Commands for whoever operates consumers and stores."""
