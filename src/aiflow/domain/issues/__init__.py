"""GitHub issues as requests (ISS): what an issue says, what people want by it, and what is to be done about it."""
