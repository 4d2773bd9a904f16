"""What the compiled engine is built with, and the licences of what is linked into it."""
