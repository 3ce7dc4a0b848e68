"""`galata doctor`: one line for each check, with the fix; 1 if any failed."""

from __future__ import annotations

from bridge.cli.finding import Finding
from bridge.cli.options import FAILED, FINE, Options, say
from bridge.cli.packages import packages


def doctor(options: Options) -> int:
    """Check everything and print it."""
    findings = [packages()]
    _print(findings)
    if not _failed(findings):
        from bridge.cli.examination import examine

        findings = examine(options)
        _print(findings)
    return FAILED if _failed(findings) else FINE


def _print(findings: list[Finding]) -> None:
    for finding in findings:
        say(finding.line())


def _failed(findings: list[Finding]) -> bool:
    return any(finding.state == "FAIL" for finding in findings)
