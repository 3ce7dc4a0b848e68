-- What a model's token estimate is to be multiplied by, learnt from what the provider reported.
CREATE TABLE token_ratios (
    model         TEXT NOT NULL PRIMARY KEY,
    ratio         REAL NOT NULL,
    samples       INTEGER NOT NULL,
    updated_at    TEXT NOT NULL
);
