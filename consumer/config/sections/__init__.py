"""The sections of the configuration: their settings, defaults, and what each section checks of itself alone."""
