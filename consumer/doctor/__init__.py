"""What ``dupwatch doctor`` looks at: each check finds, and says what is to be done; none changes anything."""
