"""The index of words in the texts of open flags: which words, how they are stored, and how flags are found by them."""
