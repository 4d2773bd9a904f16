"""Looking into a store and mending what it says: inspection, export, comparison of two stores, releases."""
