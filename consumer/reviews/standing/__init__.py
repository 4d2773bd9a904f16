"""Standing decisions: what people decide about flags that are still to come.

One is about a story, whose further copies are right, or about a pair of sources, whose flags are wrong. While it is in
force, every new flag that it fits is decided as it is stored: in the name of its owner, as if the owner had clicked.
Where a story's decision and one about the sources both fit, the story's counts: it says more about the flag.
"""
