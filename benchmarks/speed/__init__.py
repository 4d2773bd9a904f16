"""Speed against what people would write today: each measurement is a module that also runs alone."""
