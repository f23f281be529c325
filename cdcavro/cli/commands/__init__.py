"""The commands: a module for each, with the command's name."""
