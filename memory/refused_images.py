"""Images that a model has refused, so that no later turn sends it them again."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from memory.clock import stamp
from memory.database import Database


@dataclass(frozen=True, slots=True)
class RefusedImage:
    """An image of a message of `run_id`, by its SHA-256, and whether the model took a smaller one; else
    it has to do without."""

    run_id: str
    image: bytes
    smaller: bool


class RefusedImages:
    """Of all sessions; `model` is the configuration's name of one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def known(self, session: int, model: str) -> dict[bytes, bool]:
        """The images of a session that are known, and whether a smaller one will do."""
        rows = await self._database.read(
            "SELECT image, MIN(smaller) FROM refused_images WHERE session_id = ? AND model = ?"
            " GROUP BY image",
            (session, model),
        )
        return {bytes(row[0]): bool(row[1]) for row in rows}

    async def note(self, session: int, model: str, refused: Sequence[RefusedImage]) -> None:
        """Store them. That an image was left out stays, also when it is noted again."""
        now = stamp()
        rows = [(session, model, one.run_id, one.image, one.smaller, now) for one in refused]

        def op(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT INTO refused_images (session_id, model, run_id, image, smaller, at)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (session_id, model, run_id, image)"
                " DO UPDATE SET smaller = MIN(smaller, excluded.smaller)",
                rows,
            )

        await self._database.write(op)
