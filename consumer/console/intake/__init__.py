"""The console's background work: takes in flags, sends releases and events, and keeps counts and indexes up to date."""
