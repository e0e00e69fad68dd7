-- schema.sql: the catalogue of a cache directory: what its objects are, for people.
-- Rebuilt from the objects whenever it is missing or damaged. Times are seconds since 1970.

-- What kernels share that were compiled alike: compiler, options, templates, architecture.
CREATE TABLE env (
    env_id     INTEGER PRIMARY KEY, -- first 8 bytes of the XXH3-128 of manifest
    manifest   TEXT NOT NULL,       -- the manifest lines that do not depend on the kernel
    first_seen INTEGER,
    last_seen  INTEGER
);

-- One row an object. A row may outlive its object, and an object may lack its row.
CREATE TABLE entry (
    key         BLOB PRIMARY KEY CHECK (length(key) = 16),
    env_id      INTEGER NOT NULL,
    role        TEXT,
    ratio       TEXT,
    hidden      INTEGER,
    dtype       TEXT,
    topo        TEXT,
    arch        TEXT,
    bytes       INTEGER,            -- the object file
    image_bytes INTEGER,
    sum         BLOB,               -- XXH3-128 of the image
    compile_ms  REAL,
    created     INTEGER,
    last_used   INTEGER,
    uses        INTEGER DEFAULT 0,
    pinned      INTEGER DEFAULT 0,
    origin      TEXT                -- compiler, or scan: found in obj/ when the catalogue was made
) WITHOUT ROWID;                    -- no blobs in here: the images are the object files

CREATE INDEX entry_lru ON entry (pinned, last_used);

-- Compiles that failed, so that other processes need not repeat them at once.
CREATE TABLE failure (
    key     BLOB PRIMARY KEY,
    class   TEXT,
    message TEXT,
    log     TEXT,
    at      INTEGER,
    boot    TEXT,
    pid     INTEGER
) WITHOUT ROWID;

CREATE TABLE counter (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
