"""The logger that Bolt and the SDK are given: errors only, without tickets, tokens or traces.

At DEBUG they print every message, at WARNING that a token in the environment is not used, and with
a trace of a failed connection the address with its one-time ticket.
"""

from __future__ import annotations

import logging
import re

_SECRETS = re.compile(r"(ticket=|xox[a-z]-|xapp-)[^&\s'\")]+")


class _Redaction(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        said = _SECRETS.sub(r"\1***", record.getMessage())
        record.msg, record.args, record.exc_info = said, None, None
        return True


def sdk_logger() -> logging.Logger:
    """The logger `channels.slack.sdk`."""
    logger = logging.getLogger("channels.slack.sdk")
    logger.setLevel(logging.ERROR)
    if not logger.filters:
        logger.addFilter(_Redaction())
    return logger
