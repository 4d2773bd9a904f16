"""Where records come from: one adapter a module."""
