"""The command `galata`: one module for each command, imported when it is called."""
