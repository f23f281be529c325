"""One module for each command, under the command's name."""
