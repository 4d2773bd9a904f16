"""The sections of the configuration: their settings, defaults, and the checks within one section."""
