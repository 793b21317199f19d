-- The state of the sandbox. Instants are seconds since 1970.
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS members (id TEXT PRIMARY KEY, name TEXT NOT NULL, headline TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS organizations (id TEXT PRIMARY KEY, name TEXT NOT NULL, vanity_name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS roles (
    member TEXT NOT NULL, organization TEXT NOT NULL, role TEXT NOT NULL, PRIMARY KEY (member, organization)
);
CREATE TABLE IF NOT EXISTS codes (
    code TEXT PRIMARY KEY, member TEXT NOT NULL, scopes TEXT NOT NULL, redirect_uri TEXT NOT NULL,
    challenge TEXT NOT NULL, expires_at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS tokens (
    token TEXT PRIMARY KEY, member TEXT NOT NULL, scopes TEXT NOT NULL, expires_at REAL NOT NULL,
    revoked INTEGER NOT NULL DEFAULT 0, refresh_token TEXT UNIQUE, refresh_expires_at REAL
);
CREATE TABLE IF NOT EXISTS assets (
    urn TEXT PRIMARY KEY, kind TEXT NOT NULL, owner TEXT NOT NULL, size INTEGER, upload_token TEXT NOT NULL,
    created_at REAL NOT NULL, sent_at REAL, failure TEXT
);
CREATE TABLE IF NOT EXISTS parts (
    urn TEXT NOT NULL, number INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER, etag TEXT,
    times INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (urn, number)
);
CREATE TABLE IF NOT EXISTS posts (
    urn TEXT PRIMARY KEY, author TEXT NOT NULL, commentary TEXT NOT NULL, body TEXT NOT NULL,
    digest TEXT NOT NULL, created_at REAL NOT NULL, deleted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS posts_digest ON posts (digest);
CREATE INDEX IF NOT EXISTS posts_author ON posts (author, created_at);
CREATE TABLE IF NOT EXISTS usage (day TEXT, who TEXT, requests INTEGER NOT NULL, PRIMARY KEY (day, who));
