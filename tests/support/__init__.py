"""What tests share: a small test language, the messages they read, and plain models to hold the project against."""
