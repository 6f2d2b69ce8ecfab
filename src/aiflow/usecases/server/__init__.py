"""What the server does: it lets people in, starts work, watches what happens, and looks after its processes."""
