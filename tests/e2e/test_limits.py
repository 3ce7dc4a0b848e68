"""Limits in Telegram: who may set them is asked of Telegram each time, and they hold at once."""

from __future__ import annotations

from pathlib import Path

from tests.field_cases.world import on_telegram


async def test_limits_in_a_telegram_group(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as it:
        group, server = it.group, it.server
        boss, bo = server.user("Boss", language_code="en"), server.user("Bo", language_code="en")
        group.members |= {boss.id: boss, bo.id: bo}
        group.make_admin(boss)

        group.send("/limits set\nQuestions per person per day： 1", sender=boss)
        await group.wait_for_message(lambda m: "not set → 1" in m.text)
        it.llm.answer("One.")
        group.send("/ask one", sender=bo)
        await group.wait_for_text("One.")
        group.send("/ask two", sender=bo)
        told = await group.wait_for_message(lambda m: "may ask here in a day" in m.text)
        assert "(Europe/Berlin)" in told.text

        group.send("/limits set questions_per_person_per_day 9", sender=bo)
        await group.wait_for_message(lambda m: "Only admins of this group" in m.text)
        server.fail_next("getChatAdministrators", status=502)
        group.send("/limits set questions_per_person_per_day 8", sender=boss)
        await group.wait_for_message(lambda m: "cannot find out right now" in m.text)
        group.make_admin(boss, "member")
        group.send("/limits set questions_per_person_per_day 7", sender=boss)
        await server.wait_for(lambda: sum(t.startswith("Only admins") for t in group.texts) == 2)

        group.send_anonymously("/limits set questions_per_person_per_day 5")
        await group.wait_for_message(lambda m: "1 → 5" in m.text)
        it.llm.answer("Two.")
        group.send("/ask two", sender=bo)
        await group.wait_for_text("Two.")
        assert len(server.calls_to("getChatAdministrators")) >= 4, "asked anew each time"
