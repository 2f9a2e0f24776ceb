"""The sub-commands, one module each, imported when they are used."""
