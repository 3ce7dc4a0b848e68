"""One thing that the app has to acknowledge, whichever way it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.servers.slack_render import Json


@dataclass(eq=False)
class Delivery:
    """An event, a command, a press or a form.

    `attempts` counts the times it was sent or should have been; `sent` those in which it went out;
    `acks` the acknowledgements; `response` is what the first of them carried. `failure` says why
    it was given up.
    """

    kind: str
    payload: Json
    accepts_response: bool = False
    envelope_id: str = ""
    attempts: int = 0
    sent: int = 0
    acks: int = 0
    failure: str | None = None
    response: Any = None
    settled: Callable[[Delivery], None] | None = None
    """Called once, when the answer is there or will never come."""
    timer: asyncio.TimerHandle | None = None

    @property
    def event(self) -> Json:
        """The inner event of an `events_api` delivery."""
        event: Json = self.payload.get("event", {})
        return event

    @property
    def acknowledged(self) -> bool:
        """The app has answered."""
        return self.acks > 0

    @property
    def given_up(self) -> bool:
        """The app has not answered, and nothing more is sent."""
        return self.failure is not None

    @property
    def done(self) -> bool:
        """Nothing more is sent by itself."""
        return self.acknowledged or self.given_up

    @property
    def repeats(self) -> bool:
        """Only events are sent again; after a command or a press the person sees an error."""
        return self.kind == "events_api"

    def acknowledge(self, response: Any) -> None:
        """Takes an answer of the app."""
        first = not self.done
        self.acks += 1
        self.stop_timer()
        if first:
            self.response = response
            self._settle()

    def give_up(self, failure: str) -> None:
        """Nothing more is sent; `failure` in Slack's words (`operation_timeout`)."""
        self.failure = failure
        self.stop_timer()
        self._settle()

    def stop_timer(self) -> None:
        """No retry is due."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _settle(self) -> None:
        if self.settled is not None:
            self.settled(self)

    def __repr__(self) -> str:
        what = self.event.get("type") or self.payload.get("type") or self.payload.get("command")
        return f"<{self.kind} {what} attempts={self.attempts} acks={self.acks} {self.failure}>"
