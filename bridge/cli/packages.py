"""Whether `agent`, `bridge`, `channels` and `memory` are ours.

Other distributions have packages of these names (Django's `channels`). Then hardly anything of
Galata can be imported, so this module needs nothing of it.
"""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from bridge.cli.finding import Finding

DISTRIBUTION = "galata"
PACKAGES = ("agent", "bridge", "channels", "memory")
_ALONE = (
    "give Galata a virtual environment of its own (`make run` makes one): another distribution "
    "with a package of this name, such as Django's channels, is in the same one"
)


def packages() -> Finding:
    """Where our four packages are, and whom else they belong to."""
    home = Path(__file__).resolve().parents[2]
    owners = metadata.packages_distributions()
    for name in PACKAGES:
        spec = find_spec(name)
        file = None if spec is None else spec.origin
        if file is None or Path(file).resolve().parents[1] != home:
            return Finding("FAIL", "packages", f"{name} is not Galata's ({file})", _ALONE)
        strangers = sorted(set(owners.get(name, ())) - {DISTRIBUTION})
        if strangers:
            text = f"{name} also belongs to {', '.join(strangers)}"
            return Finding("FAIL", "packages", text, _ALONE)
    return Finding("ok", "packages", f"{', '.join(PACKAGES)} in {home}")
