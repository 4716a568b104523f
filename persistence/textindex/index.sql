-- The search index of lashd. Everything in it is derived from lashd.db and can be made again from there.

-- The store that the index was made from.
CREATE TABLE source (
  version  INTEGER NOT NULL,
  store_id TEXT NOT NULL,
  epoch    INTEGER NOT NULL
) STRICT;

-- The messages of a branch are in the index up to this generation.
CREATE TABLE branches (
  branch     INTEGER PRIMARY KEY,
  generation INTEGER NOT NULL
) STRICT;

-- A message. Its number orders messages by time. place is branch * 2^32 + generation, as in lashd.db. agent: a model
-- wrote it.
CREATE TABLE messages (
  message INTEGER PRIMARY KEY,
  place   INTEGER NOT NULL UNIQUE,
  agent   INTEGER NOT NULL
) STRICT;

-- The text of each message, by its number. workspace is one word that stands for the directory of the session.
CREATE VIRTUAL TABLE message_text USING fts5(text, workspace, tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2 3');
INSERT INTO message_text (message_text, rank) VALUES ('secure-delete', 1);

-- The titles of sessions, by the number of the session in lashd.db.
CREATE VIRTUAL TABLE titles USING fts5(title, tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2 3');
INSERT INTO titles (titles, rank) VALUES ('secure-delete', 1);
