-- Images of a run's messages, by SHA-256, that a model has refused, and whether it took a smaller one.
CREATE TABLE refused_images (
    id            INTEGER PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions (id),
    model         TEXT NOT NULL,
    run_id        TEXT NOT NULL,
    image         BLOB NOT NULL,
    smaller       INTEGER NOT NULL,
    at            TEXT NOT NULL,
    UNIQUE (session_id, model, run_id, image)
);
