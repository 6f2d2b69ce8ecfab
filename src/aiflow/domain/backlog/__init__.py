"""The rules of the backlog: what a request says, what runs next, and why everything else does not."""
