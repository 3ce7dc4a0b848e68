"""What an operator needs: one process per folder and token, its health, its store, and its copies.

- `signals`, `data_folder`, `token_lock`: one process, and how it is asked to stop
- `running`: what can be seen of it: `status`, `watch` (each channel), `health` and `metrics` over HTTP
- `guard`, `alerts`: what is wrong, and how owners hear of it; `budget_warnings`: who hears of a budget
- `owners`: the link that makes the first one
- `policy_changes`: what follows when a chat's limits change
- `upkeep`: the store's jobs by the clock; `backup` and `restore`
"""
