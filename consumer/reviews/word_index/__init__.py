"""The index of words in the texts of undecided flags: cutting words, storing them, and finding flags by them."""
