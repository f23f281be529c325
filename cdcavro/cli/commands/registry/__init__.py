"""The commands of schema registries: a module for each, with the command's name."""
