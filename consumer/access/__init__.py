"""Who may do what, and who did it: tokens for programs, and the audit log."""
