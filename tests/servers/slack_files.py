"""Files: the upload in three steps, files.info, and the download with the bot's token.

From docs.slack.dev/messaging/working-with-files. A download without the token, or without the
scope, is answered 200 with the login page, as the real one does.
"""

from __future__ import annotations

import mimetypes

from tests.servers.slack_methods import bot_message_of, check_thread, writable
from tests.servers.slack_params import as_json, refuse_arguments, want
from tests.servers.slack_render import Json
from tests.servers.slack_state import File, SlackError
from tests.servers.slack_world import World

LOGIN_PAGE = """<!DOCTYPE html><html lang="en-US"><head><title>Login | Slack</title></head>
<body><form id="signin_form" action="/" method="post"></form></body></html>"""


def get_upload_url(world: World, params: Json) -> Json:
    name = want(params, "filename")
    try:
        length = int(want(params, "length"))
    except ValueError:
        refuse_arguments("must be an integer [json-pointer:/length]")
    if length <= 0:
        refuse_arguments("must be greater than 0 [json-pointer:/length]")
    media_type = mimetypes.guess_type(name)[0] or "text/plain"
    file = world.file(name, b"", media_type, world.bot)
    file.expected = length
    return {"upload_url": f"{world.origin}/upload/v1/{file.id}", "file_id": file.id}


def take_upload(world: World, file_id: str, content: bytes) -> str:
    """The second step: the bytes. Raises `SlackError` for an unknown URL."""
    file = world.files.get(file_id)
    if file is None or file.expected is None:
        raise SlackError("file_not_found", status=404)
    if len(content) != file.expected:
        raise SlackError("file_update_failed", status=400)
    file.content = content
    return f"OK - {len(content)}"


def complete_upload(world: World, params: Json) -> Json:
    wanted = as_json(params.get("files"), [])
    if not wanted:
        refuse_arguments("missing required field: files")
    files = []
    for one in wanted:
        file = world.files.get(one.get("id", ""))
        if file is None or (file.expected is not None and not file.content):
            raise SlackError("file_not_found")
        file.title = one.get("title") or file.name
        files.append(file)
    channels = [one for one in str(params.get("channels") or "").split(",") if one]
    if params.get("channel_id"):
        channels.append(str(params["channel_id"]))
    places = [writable(world, channel, allow_user=False) for channel in channels]
    for place in places:
        thread_ts = check_thread(place, params.get("thread_ts"))
        message = bot_message_of(world, place, str(params.get("initial_comment") or ""))
        message.thread_ts, message.files, message.subtype = thread_ts, files, "file_share"
        place.add(message)
    for file in files:
        file.expected = None
    return {"files": [file.json() for file in files]}


def file_info(world: World, params: Json) -> Json:
    file = world.files.get(want(params, "file"))
    if file is None or not visible(world, file):
        raise SlackError("file_not_found")
    private = {place: [{"ts": ts} for ts in stamps] for place, stamps in file.shares.items()}
    return {"file": file.json() | {"shares": {"private": private}}, "comments": []}


def visible(world: World, file: File) -> bool:
    """Whether the bot may see it: it is its own, or shown where the bot is a member."""
    places = [world.conversations[one] for one in file.shares]
    return file.user == world.bot.id or any(place.has_bot for place in places)


def download(world: World, file_id: str, authorized: bool) -> File | None:
    """The file, or None for the login page."""
    file = world.files.get(file_id)
    if file is None or not authorized or "files:read" not in world.scopes:
        return None
    return file if visible(world, file) else None
