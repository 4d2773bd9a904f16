"""Standing decisions: decisions that people make about future flags.

A standing decision is about a story, whose further copies are right, or about a pair of sources, whose flags are wrong.
While it is in force, every matching new flag is decided when it is stored, in the name of the owner. If decisions about
the story and about the sources both match, the one about the story applies, since it is more specific.
"""
