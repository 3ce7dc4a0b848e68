"""What a text says, as far as code can tell: pure functions over words.

- `words`: the words that are searched for, in any script; `prefixes`: those that hold another word
- `telling`: the words by which two texts say the same
- `relative`: days that are named by today
- `quoting`: how a question marks what is not its writer's own
- `provenance`: whose words a fact is made of
- `own_names`: what a person calls themselves, and how little that proves
"""
