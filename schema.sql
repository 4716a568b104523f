-- All data of lashd is in one SQLite file. Every table is STRICT. The comment of a table says what a row means, who
-- owns it and when it is deleted.
--
-- Times are milliseconds since 1970. Order never depends on times or ids, only on seq, generation and row numbers.
-- sum is the checksum of a row (persistence/sums.go), which reveals damage. events and blobs have hashes of their own.
-- Bodies are JSON of the types in rpc/protocol. Values that queries search for have columns of their own.
-- Conditions on tables that every turn writes use OR: for IN with three or more values SQLite builds a temporary
-- table each time.

-- A fact about the store: store_id, epoch (a random number that changes when history may differ
-- from what clients saw), epoch_before (the previous epoch), commits (their number), opened (absent
-- from a backup that was never opened), rollback (lost commits that the user has not acknowledged),
-- secret (signs the keys of pending calls), task_changes (number of the newest change of any task).
CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL,
  sum   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A session and its head. branch and generation are the position of its leaf; seq and chain are the
-- end of its log. authority holds the limits from its creation, which never change. parent is the
-- session that it works for; the parent's ledger includes its usage under usage_label. When the
-- parent is deleted, the parent's parent takes its place, if there is one. Row numbers of deleted
-- sessions are never reused, so a reader with an old number finds nothing instead of another
-- session's rows.
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
CREATE INDEX sessions_by_cwd ON sessions (cwd);
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL;

-- The input that a session was created with, until a commit takes it. Deleted with its session.
CREATE TABLE first_inputs (
  session INTEGER PRIMARY KEY REFERENCES sessions (session) ON DELETE CASCADE,
  body    BLOB NOT NULL,
  sum     INTEGER NOT NULL
) STRICT;

-- The id of a deleted session. The id is never reused, so the row is never removed.
CREATE TABLE deleted_sessions (
  session_id TEXT PRIMARY KEY,
  deleted_at INTEGER NOT NULL,
  sum        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A part of history that one session appends to. It continues from a node of its parent branch, so
-- a fork or a rewind writes one row. session is NULL once the session is deleted; the row is
-- removed when no other branch continues from it.
CREATE TABLE branches (
  branch            INTEGER PRIMARY KEY AUTOINCREMENT,
  session           INTEGER,
  parent_branch     INTEGER REFERENCES branches (branch),
  parent_generation INTEGER,
  sum               INTEGER NOT NULL
) STRICT;
CREATE INDEX branches_by_parent ON branches (parent_branch);
CREATE INDEX branches_by_session ON branches (session);

-- A node of history. place is branch * 2^32 + generation, so a path is a few range scans. Belongs
-- to its branch.
CREATE TABLE nodes (
  place   INTEGER PRIMARY KEY,
  node_id TEXT NOT NULL UNIQUE,
  frame   TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  at      INTEGER NOT NULL,
  body    BLOB NOT NULL,
  sum     INTEGER NOT NULL
) STRICT;

-- A node that a session keeps reachable although its leaf is elsewhere. Belongs to its session.
CREATE TABLE pins (
  session INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  node_id TEXT NOT NULL,
  place   INTEGER NOT NULL,
  reason  TEXT NOT NULL,
  at      INTEGER NOT NULL,
  sum     INTEGER NOT NULL,
  PRIMARY KEY (session, node_id)
) STRICT, WITHOUT ROWID;

-- An entry of a session's log. place is session * 2^32 + seq. chain is the SHA-256 of the previous
-- chain and of this row. The body refers to nodes by id. Deleted with its session.
CREATE TABLE events (
  place INTEGER PRIMARY KEY,
  type  TEXT NOT NULL,
  body  BLOB NOT NULL,
  chain BLOB NOT NULL CHECK (length(chain) = 32)
) STRICT;

-- An accepted turn. incarnation identifies the run of the daemon that drives it. report is set when
-- the turn has ended. Deleted with its session.
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

-- An input, a plugin's queued input or a wake, and the turn that uses it. source is a key of the
-- plugin or of the wake's cause; it makes a repeated input count once. stream and ordinal order the
-- wakes of one stream. refused says why a wake was dropped. plugin_inputs is the part for plugins,
-- if any. Rows stay as evidence after the input has ended. Deleted with its session.
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
CREATE INDEX inputs_by_session ON inputs (session);
CREATE UNIQUE INDEX inputs_by_source ON inputs (session, source) WHERE source <> '';
CREATE INDEX inputs_by_stream ON inputs (session, stream, ordinal) WHERE stream <> '';
CREATE INDEX inputs_pending ON inputs (session, input) WHERE
  state = 'pendingActive' OR state = 'deferredNextTurn' OR state = 'queued' OR state = 'accepted';

-- An effect of a running turn: its request (hash) and, once it is finished, its result (body). A
-- restart replays finished effects. turn_id is a turn, or a client's tool call outside any turn.
-- The commit that ends the turn or call removes the row. Rows that a crash leaves are deleted with
-- the session.
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

-- A row of the usage ledger. operation and ordinal make a repeated commit count once. When its
-- session is deleted, the row moves to the ledger of the session's parent; without a parent it is
-- deleted.
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

-- The result that was returned for an idempotency key. An empty result means that the request has
-- begun. hash covers the method and its params. session is NULL if the request belonged to no
-- session. When a session is deleted, its receipts keep the key, but session and result become
-- NULL. Rows without a session are deleted after 30 days.
CREATE TABLE receipts (
  key     TEXT PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 256),
  session INTEGER REFERENCES sessions (session),
  hash    BLOB NOT NULL,
  result  BLOB,
  at      INTEGER NOT NULL,
  sum     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX receipts_by_session ON receipts (session);

-- A decision: a question that a session waits on, and its answer. Deleted with its session.
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

-- A named state of a session: its leaf, and the components in the table components. Deleted with
-- its session.
CREATE TABLE snapshots (
  session INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  name    TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 256),
  node_id TEXT NOT NULL,
  place   INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  sum     INTEGER NOT NULL,
  PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

-- A named part of a session's state: of the current state if snapshot is empty, else of the
-- snapshot with that name. Parts of a component have its name, a slash and a name of their own. A
-- small body is stored here. A larger one has body NULL and is a blob with this digest, which this
-- row keeps alive. Unchanged components are not written again. Deleted with its session.
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

-- Content by its SHA-256. body is NULL if the content is in a file, which is written and synced
-- before this row. The commit that deletes the last referring row of blob_refs or components
-- deletes this row; the file is removed after that commit.
CREATE TABLE blobs (
  digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
  size   INTEGER NOT NULL,
  body   BLOB
) STRICT, WITHOUT ROWID;

-- A session refers to a blob as an artifact. Deleted with its session.
CREATE TABLE blob_refs (
  session INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  digest  TEXT NOT NULL REFERENCES blobs (digest),
  sum     INTEGER NOT NULL,
  PRIMARY KEY (session, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_refs_by_digest ON blob_refs (digest);

-- An approval rule that a person stored: in this workspace, calls of this tool with this subject
-- are allowed. The subject is the digest of the arguments, without those that may vary, a space,
-- and the arguments in a line for people. Without a tool, the subject is a rule as JSON, which may
-- also ask or deny.
CREATE TABLE approvals (
  cwd     TEXT NOT NULL,
  tool    TEXT NOT NULL,
  subject TEXT NOT NULL,
  by      TEXT NOT NULL,
  at      INTEGER NOT NULL,
  sum     INTEGER NOT NULL,
  PRIMARY KEY (cwd, tool, subject)
) STRICT, WITHOUT ROWID;

-- A fact about plugins that belongs to no session, such as a trusted digest or a disabled plugin.
-- The plugin loader defines the kinds and their bodies.
CREATE TABLE plugin_facts (
  kind TEXT NOT NULL,
  key  TEXT NOT NULL,
  body BLOB NOT NULL,
  at   INTEGER NOT NULL,
  sum  INTEGER NOT NULL,
  PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

-- A task as computed from its events (body). Its id is unique within its session and stays unique
-- when it moves to another session. ended: the task is final. external: it runs outside lashd, and
-- a restart has nothing to do for it. change is the number of its last change, counted over all
-- tasks in meta.task_changes, so a reader that continues from a number misses none. A pruned task
-- has no events. Deleted with its session.
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

-- A session may see a task of another session, because it started or observes the task. Deleted
-- with the task.
CREATE TABLE task_viewers (
  viewer TEXT NOT NULL,
  task   INTEGER NOT NULL REFERENCES tasks (task) ON DELETE CASCADE,
  sum    INTEGER NOT NULL,
  PRIMARY KEY (viewer, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_viewers_by_task ON task_viewers (task);

-- An event of a task, in order. The task is the fold of its events. key makes a repeated event
-- count once; empty: no key. Deleted with its task, or when the task is pruned.
CREATE TABLE task_events (
  task    INTEGER NOT NULL REFERENCES tasks (task) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  key     TEXT NOT NULL,
  body    BLOB NOT NULL,
  sum     INTEGER NOT NULL,
  PRIMARY KEY (task, ordinal)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX task_events_by_key ON task_events (task, key) WHERE key <> '';

-- A rule that wakes or starts a session when something happens. session is the owner, with which it
-- is deleted; NULL: the user. A trigger that is deleted and created again has a new trigger_id.
-- ticked_at is the newest time of its schedule that was handled.
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

-- An event that triggers can react to. occurrence_id is derived from the source's type, the
-- source's key and the event's key, so each event is stored once. The newest of each type are kept.
-- The commit that adds a newer one deletes older ones whose deliveries are all done.
CREATE TABLE occurrences (
  occurrence    INTEGER PRIMARY KEY AUTOINCREMENT,
  occurrence_id TEXT NOT NULL UNIQUE,
  type          TEXT NOT NULL,
  body          BLOB NOT NULL,
  sum           INTEGER NOT NULL
) STRICT;
CREATE INDEX occurrences_by_type ON occurrences (type, occurrence);

-- What an occurrence does for one trigger, and the outcome. action is the trigger's action at the
-- time of the event, until the delivery is done. Deleted with its occurrence; its trigger may be
-- deleted earlier.
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

-- A directory in which tools of sessions work, by its real path. Deleted when no file point refers
-- to it.
CREATE TABLE workspaces (
  workspace INTEGER PRIMARY KEY AUTOINCREMENT,
  root      TEXT NOT NULL UNIQUE,
  sum       INTEGER NOT NULL
) STRICT;

-- The location of a copy of file content, by the SHA-256 of the content: length bytes at offset at
-- of a pack file. The pack is written and synced before this row. A sweep deletes rows that neither
-- workspace_files nor file_changes refers to.
CREATE TABLE file_copies (
  digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
  pack   TEXT NOT NULL,
  at     INTEGER NOT NULL,
  length INTEGER NOT NULL,
  sum    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX file_copies_by_pack ON file_copies (pack);

-- The state of a path at the last scan. size, the times in ns and inode show whether the file has
-- changed without reading it. Without a digest there is no copy of its content. Deleted with its
-- workspace.
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

-- What a turn or an undo changed in the files of a workspace: body, and rows of file_changes.
-- journal is the remaining work of an undo, which a restart finishes. Deleted with its session.
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

-- A change of a file, in the step of its workspace in which it was seen. If several sessions were
-- running, each has a row for it. before and after are the copies of the content, if there are any;
-- body has the states. Deleted with its point, or when the point is pruned.
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
