"""DynamoDB: its client, the queue on it, and the local store."""
