"""Who may talk to the bot, and how people and groups are let in.

- `policy`: the one place that answers who may do what; `members`: who is in a group that lets people in
- `stores`: what is kept of all this
- `door`: what strangers and unknown groups meet: `pairing`, `invites`, `groups`
- `desk`: how owners are asked, and people told, in private
- `review`: when a right is gone, what runs or waits by it is looked at anew; `silence` ends it
- `commands`: what owners do: `/approve`, `/invite`, `/people`, `/revoke`, and the buttons
- `people`: the list of everybody, and taking a right back
- `outcome`: what a command has come to
- `verbs`: the same for `galata approve`, `galata people` and `galata revoke`

Rights are checked by numeric id at the moment of the act. Names and text prove nothing.
"""

from bridge.access.policy import Access as Access
from bridge.access.policy import ChannelAccess as ChannelAccess
