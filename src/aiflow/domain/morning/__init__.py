"""What a person finds in the morning: the night on the clock, the last days, what waits; and in the evening."""
