"""Checks the Rust that builds the compiled engine, and lists the licences of the crates linked into it."""
