"""Telegram, on python-telegram-bot: long polling, private chats, groups, forum topics."""
