"""Commands for operators of consumers and stores."""
