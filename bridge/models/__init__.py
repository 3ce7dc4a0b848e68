"""The models that answer.

- `chat_models`: as the configuration names them
- `local_model`: the embedded default
- `ratios`: what their providers have taught us about the size of texts
"""
