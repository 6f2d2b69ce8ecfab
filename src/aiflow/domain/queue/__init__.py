"""The rules of the queue: tasks, runners, and why a task waits."""
