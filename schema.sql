-- The whole memory of lashd: one SQLite file. Every table is STRICT and says what a row means, who owns it and when it
-- goes. Times are milliseconds since 1970. Order never comes from times or ids: it comes from seq and generation.
-- sum is the sum of a row (persistence/sums.go): damage of the row is found by it. events and blobs have hashes of their own.
-- Bodies are JSON of the types in rpc/protocol; what is searched for stands in columns of its own. Of what every turn writes,
-- conditions are written with OR: SQLite makes a table of a list of three or more behind IN each time that it looks.

-- A fact about the store itself: store_id, epoch (another random number when history may differ from what clients saw),
-- epoch_before, commits (how many there were), opened (absent from a backup that was not opened yet), rollback (a loss of commits that nobody
-- has acknowledged), secret (signs the keys of waits).
CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL,
  sum   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A session and its head. branch and generation say where its leaf is; seq and chain say where its log ends. authority is
-- what it was granted when it was created, which never changes. parent is the session that it works for, in whose ledger its
-- usage is shown under usage_label; once that one is deleted, it is the one above it, if any. Numbers of
-- deleted sessions are not used again, so that a reader which still holds one finds nothing instead of another's rows.
CREATE TABLE sessions (
  session     INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id  TEXT NOT NULL UNIQUE CHECK (length(session_id) BETWEEN 1 AND 128),
  title       TEXT NOT NULL,
  cwd         TEXT NOT NULL,
  relation    BLOB NOT NULL,
  parent      INTEGER,
  usage_label TEXT NOT NULL,
  config      BLOB NOT NULL,
  authority   BLOB NOT NULL,
  revision    INTEGER NOT NULL,
  branch      INTEGER NOT NULL,
  generation  INTEGER NOT NULL,
  leaf        TEXT NOT NULL,
  frame       TEXT NOT NULL,
  seq         INTEGER NOT NULL,
  chain       BLOB NOT NULL CHECK (length(chain) = 32),
  turn_index  INTEGER NOT NULL,
  usage       BLOB NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  archived    INTEGER NOT NULL,
  sum         INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_update ON sessions (updated_at DESC, session DESC);
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL;

-- The input that a session was created with, for whoever takes it: who takes it removes the row. Goes with its session.
CREATE TABLE first_inputs (
  session INTEGER PRIMARY KEY REFERENCES sessions (session) ON DELETE CASCADE,
  body    BLOB NOT NULL,
  sum     INTEGER NOT NULL
) STRICT;

-- An id that was used by a session which is deleted. It is never used again, so the row is never removed.
CREATE TABLE deleted_sessions (
  session_id TEXT PRIMARY KEY,
  deleted_at INTEGER NOT NULL,
  sum        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A stretch of history that one session appends to. It goes on from a node of its parent branch, which makes a fork or
-- a rewind one row. session is NULL once its session is deleted; the row goes when no branch hangs on it any more.
CREATE TABLE branches (
  branch            INTEGER PRIMARY KEY AUTOINCREMENT,
  session           INTEGER,
  parent_branch     INTEGER REFERENCES branches (branch),
  parent_generation INTEGER,
  sum               INTEGER NOT NULL
) STRICT;
CREATE INDEX branches_by_parent ON branches (parent_branch);
CREATE INDEX branches_by_session ON branches (session);

-- A node of history. place is branch * 2^32 + generation, so that a path is a few range scans. Owned by its branch.
CREATE TABLE nodes (
  place   INTEGER PRIMARY KEY,
  node_id TEXT NOT NULL UNIQUE,
  frame   TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  at      INTEGER NOT NULL,
  body    BLOB NOT NULL,
  sum     INTEGER NOT NULL
) STRICT;

-- A node that a session wants to keep reachable although its leaf is elsewhere. Owned by its session.
CREATE TABLE pins (
  session INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  node_id TEXT NOT NULL,
  place   INTEGER NOT NULL,
  reason  TEXT NOT NULL,
  at      INTEGER NOT NULL,
  sum     INTEGER NOT NULL,
  PRIMARY KEY (session, node_id)
) STRICT, WITHOUT ROWID;

-- An event that observers saw. place is session * 2^32 + seq. chain is sha256 of the one before it and of this row.
-- The body refers to nodes by id. Goes with its session.
CREATE TABLE events (
  place INTEGER PRIMARY KEY,
  type  TEXT NOT NULL,
  body  BLOB NOT NULL,
  chain BLOB NOT NULL CHECK (length(chain) = 32)
) STRICT;

-- An accepted turn. incarnation is the daemon run that drives it; report is set once it has ended. Goes with its session.
CREATE TABLE turns (
  turn        INTEGER PRIMARY KEY,
  turn_id     TEXT NOT NULL UNIQUE,
  session     INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  state       TEXT NOT NULL CHECK (
    state = 'queued' OR state = 'running' OR state = 'waiting' OR state = 'completed' OR state = 'cancelled' OR state = 'failed'),
  incarnation TEXT NOT NULL,
  cancel      BLOB,
  report      BLOB,
  accepted_at INTEGER NOT NULL,
  started_at  INTEGER NOT NULL,
  sum         INTEGER NOT NULL
) STRICT;
CREATE INDEX turns_by_session ON turns (session, turn);
CREATE INDEX turns_open ON turns (session, turn) WHERE state = 'queued' OR state = 'running' OR state = 'waiting';

-- What a person or a client sent, a plugin queued or something woke the session with, and which turn consumes it. source is the
-- key of a plugin or of what woke it, which makes the same input come once. stream and ordinal are those of a wake whose stream comes in an order; refused is why a wake was
-- dropped. plugin_inputs is what it brings for plugins, if anything. Rows that ended stay as evidence. Goes with its session.
CREATE TABLE inputs (
  input    INTEGER PRIMARY KEY,
  input_id TEXT NOT NULL UNIQUE,
  session  INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  turn_id  TEXT NOT NULL,
  state    TEXT NOT NULL CHECK (
    state = 'pendingActive' OR state = 'deferredNextTurn' OR state = 'queued' OR state = 'accepted' OR state = 'completed' OR state = 'cancelled'),
  boundary TEXT NOT NULL,
  source   TEXT NOT NULL,
  stream   TEXT NOT NULL,
  ordinal  INTEGER NOT NULL,
  refused  TEXT NOT NULL,
  body     BLOB NOT NULL,
  plugin_inputs BLOB,
  at       INTEGER NOT NULL,
  sum           INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX inputs_by_source ON inputs (session, source) WHERE source <> '';
CREATE INDEX inputs_by_stream ON inputs (session, stream, ordinal) WHERE stream <> '';
CREATE INDEX inputs_pending ON inputs (session, input) WHERE
  state = 'pendingActive' OR state = 'deferredNextTurn' OR state = 'queued' OR state = 'accepted';

-- An effect of a turn in progress: what was asked (hash) and, once finished, what was answered. It is what a restart
-- replays. turn_id is a turn, or a call that a client makes outside of one. The commit that ends that removes it; what a
-- crash leaves goes with its session.
CREATE TABLE effects (
  session INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  turn_id TEXT NOT NULL,
  effect  INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  state   TEXT NOT NULL CHECK (state IN ('started', 'finished')),
  hash    BLOB NOT NULL,
  body    BLOB NOT NULL,
  sum     INTEGER NOT NULL,
  PRIMARY KEY (turn_id, effect, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX effects_by_session ON effects (session);

-- A line of the usage ledger. operation and ordinal make a replayed commit count once. Goes with its session, or, if that one
-- worked for another, into the ledger of that other.
CREATE TABLE usage (
  operation   TEXT NOT NULL,
  ordinal     INTEGER NOT NULL,
  session     INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  source      TEXT NOT NULL,
  model       TEXT NOT NULL,
  input       INTEGER NOT NULL,
  output      INTEGER NOT NULL,
  cache_read  INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  reasoning   INTEGER NOT NULL,
  cost        INTEGER NOT NULL,
  calls       INTEGER NOT NULL,
  unknown     INTEGER NOT NULL,
  sum         INTEGER NOT NULL,
  PRIMARY KEY (session, operation, ordinal)
) STRICT, WITHOUT ROWID;

-- The answer that was given to an idempotency key; an empty one says that the request has begun. hash covers the method and its
-- params. session is NULL for what is no session's. Once a session is deleted its keys are no session's, and the answers, which tell
-- of it, are NULL. Rows without a session go after a month.
CREATE TABLE receipts (
  key     TEXT PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 256),
  session INTEGER REFERENCES sessions (session),
  hash    BLOB NOT NULL,
  result  BLOB,
  at      INTEGER NOT NULL,
  sum     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX receipts_by_session ON receipts (session);

-- A question to a person. Goes with its session.
CREATE TABLE decisions (
  decision_id TEXT PRIMARY KEY,
  session     INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  turn_id     TEXT NOT NULL,
  open        INTEGER NOT NULL,
  body        BLOB NOT NULL,
  sum         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX decisions_open ON decisions (session) WHERE open = 1;
CREATE INDEX decisions_by_session ON decisions (session);
CREATE INDEX decisions_by_turn ON decisions (turn_id);

-- A state of a session that somebody gave a name: the node that its leaf was, and what of its components was kept.
-- Goes with its session.
CREATE TABLE snapshots (
  session INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  name    TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 256),
  node_id TEXT NOT NULL,
  place   INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  sum     INTEGER NOT NULL,
  PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

-- A keyed part of a session's saved state: of the present one if snapshot is empty, else of the snapshot of that name.
-- Parts of one thing have names that begin with its name and a slash. Small bodies stand here; larger ones have body NULL
-- and lie in blobs under digest, which this row then keeps there. What did not change is not written again. Goes with its
-- session.
CREATE TABLE components (
  session  INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  snapshot TEXT NOT NULL,
  name     TEXT NOT NULL,
  digest   TEXT NOT NULL,
  body     BLOB,
  sum      INTEGER NOT NULL,
  PRIMARY KEY (session, snapshot, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX components_in_blobs ON components (digest) WHERE body IS NULL;

-- Bytes by their sha256. body is NULL where they lie in a file, which is written and synced before this row. Goes in the
-- commit that removes the last row of blob_refs or components which needs it; its file goes after that commit.
CREATE TABLE blobs (
  digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
  size   INTEGER NOT NULL,
  body   BLOB
) STRICT, WITHOUT ROWID;

-- That a session refers to a blob as an artifact. Goes with its session.
CREATE TABLE blob_refs (
  session INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  digest  TEXT NOT NULL REFERENCES blobs (digest),
  sum     INTEGER NOT NULL,
  PRIMARY KEY (session, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_refs_by_digest ON blob_refs (digest);

-- A person's standing answer: calls of this tool, in this workspace, about exactly this subject are allowed. The subject is the
-- digest of the arguments, apart from those that may vary.
CREATE TABLE approvals (
  cwd     TEXT NOT NULL,
  tool    TEXT NOT NULL,
  subject TEXT NOT NULL,
  by      TEXT NOT NULL,
  at      INTEGER NOT NULL,
  sum     INTEGER NOT NULL,
  PRIMARY KEY (cwd, tool, subject)
) STRICT, WITHOUT ROWID;

-- Something that holds for plugins whatever sessions there are: which content of a directory ran last and was good, what a person
-- has approved or switched off. The loader knows the kinds, and what the body of each says.
CREATE TABLE plugin_facts (
  kind TEXT NOT NULL,
  key  TEXT NOT NULL,
  body BLOB NOT NULL,
  at   INTEGER NOT NULL,
  sum  INTEGER NOT NULL,
  PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

-- A task as its events make it: body. Ids are unique in a session, and stay so when a task goes to another one. ended tells that
-- it is final, external that it runs elsewhere, and a restart has nothing to do with it. change is the number of the newest change of any task, in meta as task_changes, when this one was changed: who
-- reads on from a number misses none. A pruned task is a row without events. Goes with its session.
CREATE TABLE tasks (
  task     INTEGER PRIMARY KEY AUTOINCREMENT,
  session  INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  task_id  TEXT NOT NULL CHECK (length(task_id) BETWEEN 1 AND 128),
  kind     TEXT NOT NULL,
  external INTEGER NOT NULL,
  hidden   INTEGER NOT NULL,
  ended    INTEGER NOT NULL,
  change   INTEGER NOT NULL UNIQUE,
  body     BLOB NOT NULL,
  sum      INTEGER NOT NULL,
  UNIQUE (session, task_id)
) STRICT;
CREATE INDEX tasks_live ON tasks (session) WHERE ended = 0;

-- That a session may see a task which is not its own: it started it, or observes it. Goes with the task.
CREATE TABLE task_viewers (
  viewer TEXT NOT NULL,
  task   INTEGER NOT NULL REFERENCES tasks (task) ON DELETE CASCADE,
  sum    INTEGER NOT NULL,
  PRIMARY KEY (viewer, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_viewers_by_task ON task_viewers (task);

-- What happened to a task, in order. The task is a fold of these. key makes an event of the task's own come once; empty: it has
-- none. Goes with its task, or when that is pruned.
CREATE TABLE task_events (
  task    INTEGER NOT NULL REFERENCES tasks (task) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  key     TEXT NOT NULL,
  body    BLOB NOT NULL,
  sum     INTEGER NOT NULL,
  PRIMARY KEY (task, ordinal)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX task_events_by_key ON task_events (task, key) WHERE key <> '';

-- What is to be done when something happens outside. session is who owns it, and with whom it goes; NULL: the user. What is
-- deleted and made again has another trigger_id. ticked_at is the newest time of its schedule that was seen to.
CREATE TABLE triggers (
  trigger    INTEGER PRIMARY KEY,
  trigger_id TEXT NOT NULL UNIQUE,
  session    INTEGER REFERENCES sessions (session) ON DELETE CASCADE,
  key        TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 256),
  ticked_at  INTEGER NOT NULL,
  body       BLOB NOT NULL,
  sum        INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX triggers_by_key ON triggers (coalesce(session, 0), key);
CREATE INDEX triggers_by_session ON triggers (session) WHERE session IS NOT NULL;

-- Something that happened outside, once: occurrence_id is made of source type, source key and its own key. Belongs to its source
-- type, of which the newest stay; an older one goes with the commit that adds a newer, once all that was to be done is.
CREATE TABLE occurrences (
  occurrence    INTEGER PRIMARY KEY AUTOINCREMENT,
  occurrence_id TEXT NOT NULL UNIQUE,
  type          TEXT NOT NULL,
  body          BLOB NOT NULL,
  sum           INTEGER NOT NULL
) STRICT;
CREATE INDEX occurrences_by_type ON occurrences (type, occurrence);

-- What an occurrence is to bring about, and what has come of it. action is what the trigger said when it occurred, until it is
-- done. Goes with its occurrence; trigger_id may be of one that is gone.
CREATE TABLE deliveries (
  occurrence INTEGER NOT NULL REFERENCES occurrences (occurrence) ON DELETE CASCADE,
  trigger_id TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('reserved', 'delivered', 'refused', 'failed', 'targetGone')),
  body       BLOB NOT NULL,
  action     BLOB,
  sum        INTEGER NOT NULL,
  PRIMARY KEY (occurrence, trigger_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_reserved ON deliveries (occurrence) WHERE state = 'reserved';
CREATE INDEX deliveries_by_trigger ON deliveries (trigger_id, occurrence);

-- A directory in which tools of sessions work, by its real path. Goes when no file point is of it any more.
CREATE TABLE workspaces (
  workspace INTEGER PRIMARY KEY AUTOINCREMENT,
  root      TEXT NOT NULL UNIQUE,
  sum       INTEGER NOT NULL
) STRICT;

-- Where the copy of a file's content lies, by the sha256 of the content: length bytes of a pack, which is a file, from at on. The
-- pack is written and synced before this row. Goes in a sweep, once no row of workspace_files or file_changes needs it.
CREATE TABLE file_copies (
  digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
  pack   TEXT NOT NULL,
  at     INTEGER NOT NULL,
  length INTEGER NOT NULL,
  sum    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX file_copies_by_pack ON file_copies (pack);

-- What stood at a path of a workspace when it was looked at last, and by what it is known again without reading it: size, times in
-- ns, inode. Without a digest there is no copy of its content. Goes with its workspace.
CREATE TABLE workspace_files (
  workspace INTEGER NOT NULL REFERENCES workspaces (workspace) ON DELETE CASCADE,
  path      TEXT NOT NULL,
  kind      TEXT NOT NULL,
  mode      INTEGER NOT NULL,
  size      INTEGER NOT NULL,
  modified  INTEGER NOT NULL,
  changed   INTEGER NOT NULL,
  inode     INTEGER NOT NULL,
  link      TEXT NOT NULL,
  problem   TEXT NOT NULL,
  digest    TEXT REFERENCES file_copies (digest),
  sum       INTEGER NOT NULL,
  PRIMARY KEY (workspace, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX workspace_files_by_copy ON workspace_files (digest) WHERE digest IS NOT NULL;

-- What a turn, or a rewind, did to the files of a workspace: body, and rows of file_changes. journal is what an open rewind is about
-- to do, which a restart brings to its end. Goes with its session.
CREATE TABLE file_points (
  point     INTEGER PRIMARY KEY AUTOINCREMENT,
  point_id  TEXT NOT NULL UNIQUE,
  session   INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  workspace INTEGER NOT NULL REFERENCES workspaces (workspace),
  turn_id   TEXT NOT NULL,
  open      INTEGER NOT NULL,
  body      BLOB NOT NULL,
  journal   BLOB,
  sum       INTEGER NOT NULL
) STRICT;
CREATE INDEX file_points_by_session ON file_points (session, point);
CREATE INDEX file_points_by_workspace ON file_points (workspace);
CREATE INDEX file_points_rewinding ON file_points (session) WHERE journal IS NOT NULL;

-- A change of a file, in the step of its workspace in which it was seen. Where several sessions were at work each has a row of it.
-- before and after are the copies of the content, where there are any; the states themselves are in the body. Goes with its point, or
-- when that is pruned.
CREATE TABLE file_changes (
  point  INTEGER NOT NULL REFERENCES file_points (point) ON DELETE CASCADE,
  step   INTEGER NOT NULL,
  path   TEXT NOT NULL,
  before TEXT REFERENCES file_copies (digest),
  after  TEXT REFERENCES file_copies (digest),
  body   BLOB NOT NULL,
  sum    INTEGER NOT NULL,
  PRIMARY KEY (point, step, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_changes_before ON file_changes (before) WHERE before IS NOT NULL;
CREATE INDEX file_changes_after ON file_changes (after) WHERE after IS NOT NULL;
CREATE INDEX file_changes_by_step ON file_changes (step);
