-- Who may talk to the bot beside owners and those whom the configuration lists.
--
-- A person who was let in ('in'), or shut out after that or in spite of the configuration ('out').
-- via: pairing, invite:N or owner; by: who did it, as channel:person, or 'operator' on the command
-- line. name and language are the person's own: untrusted. greeted_at: when they were told; NULL while
-- that is still to be done.
CREATE TABLE admissions (
    channel       TEXT NOT NULL,
    person        TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('in', 'out')),
    name          TEXT NOT NULL,
    language      TEXT,
    via           TEXT NOT NULL,
    by            TEXT NOT NULL,
    at            TEXT NOT NULL,
    greeted_at    TEXT,
    PRIMARY KEY (channel, person)
) WITHOUT ROWID;

-- Strangers who have asked in private to be let in. Only a hash of the code is kept. told_at: when the
-- owners were asked; NULL while that is still to be done.
CREATE TABLE pairings (
    id            INTEGER PRIMARY KEY,
    channel       TEXT NOT NULL,
    person        TEXT NOT NULL,
    name          TEXT NOT NULL,
    language      TEXT,
    code_hash     TEXT NOT NULL UNIQUE,
    state         TEXT NOT NULL CHECK (state IN ('open', 'allowed', 'refused', 'replaced')),
    asked_at      TEXT NOT NULL,
    expires_at    TEXT NOT NULL,
    told_at       TEXT,
    decided_by    TEXT,
    decided_at    TEXT
);
CREATE INDEX pairings_by_person ON pairings (channel, person);

-- Links and codes that let in whoever uses them, `uses` people until expires_at. How often one was used
-- is counted from the rows of invite_uses.
CREATE TABLE invites (
    id            INTEGER PRIMARY KEY,
    channel       TEXT NOT NULL,
    code_hash     TEXT NOT NULL UNIQUE,
    uses          INTEGER NOT NULL,
    made_by       TEXT NOT NULL,
    made_at       TEXT NOT NULL,
    expires_at    TEXT NOT NULL,
    revoked_at    TEXT
);
CREATE TABLE invite_uses (
    invite_id     INTEGER NOT NULL REFERENCES invites (id),
    person        TEXT NOT NULL,
    at            TEXT NOT NULL,
    PRIMARY KEY (invite_id, person)
) WITHOUT ROWID;

-- Codes that nobody was given: after a few of them within an hour no more are looked at.
CREATE TABLE wrong_codes (
    tried_by      TEXT NOT NULL,
    at            TEXT NOT NULL
);
CREATE INDEX wrong_codes_by_person ON wrong_codes (tried_by, at);

-- Groups that the bot was added to without the configuration listing them. asked: an owner is to
-- decide; left: nobody did in time. deaf: it sees no mentions there. told_at: when the owners were asked,
-- greeted_at: when an allowed group was greeted; NULL while that is still to be done.
CREATE TABLE known_groups (
    channel       TEXT NOT NULL,
    account       TEXT NOT NULL,
    chat          TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('asked', 'allowed', 'refused', 'left')),
    title         TEXT NOT NULL,
    language      TEXT,
    deaf          INTEGER NOT NULL,
    added_by      TEXT NOT NULL,
    asked_at      TEXT NOT NULL,
    told_at       TEXT,
    decided_by    TEXT,
    decided_at    TEXT,
    greeted_at    TEXT,
    PRIMARY KEY (channel, account, chat)
) WITHOUT ROWID;
