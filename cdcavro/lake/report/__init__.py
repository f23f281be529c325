"""What became of all messages of a job since its first batch: an account in a file, and a page for people."""
