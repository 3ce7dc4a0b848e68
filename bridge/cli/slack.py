"""`galata slack manifest`."""

from __future__ import annotations

import json

from bridge.cli.options import FINE, Options, say

NAME = "Galata"


def show_manifest(options: Options) -> int:
    """The manifest as JSON, which Slack takes when an app is created."""
    from channels.slack.manifest import manifest

    say(json.dumps(manifest(NAME, url=options.url), indent=2))
    return FINE
