"""Slack, on slack-bolt: Socket Mode, direct messages, mentions, threads."""
