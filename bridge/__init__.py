"""The bridge: it ties channels, memory and the agent together, and is the command line."""
