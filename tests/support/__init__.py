"""What tests share: a small test language, the messages they read, and simple models to compare the project with."""
