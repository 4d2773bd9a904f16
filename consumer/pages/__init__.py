"""The pages of the latest flags of a consumer, with their evidence."""
