"""Standing decisions: decisions that people make about future flags.

A standing decision about a story says that its further copies are right. One about a pair of sources says that flags of
the first source as a copy of the second are wrong. While a standing decision is in force, every matching new flag is
decided when it is stored, in the name of the person who made the standing decision. If decisions about the story and
about the sources both match, the one about the story applies, since it is more specific.
"""
