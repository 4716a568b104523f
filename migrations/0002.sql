-- Add a checksum to each row. events and blobs have their own hashes. SQLite cannot add the column at its place in
-- schema.sql, so each table is created again. row_sum is a function of lashd (persistence/sums.go).

CREATE TABLE old_numbers AS SELECT name, seq FROM sqlite_sequence;

CREATE TABLE old_meta AS SELECT * FROM meta;
DROP TABLE meta;
CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL,
  sum   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta (name, value, sum)
SELECT name, value, row_sum('meta(name,value)', name, value)
FROM old_meta;
DROP TABLE old_meta;

CREATE TABLE old_sessions AS SELECT * FROM sessions;
DROP TABLE sessions;
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
INSERT INTO sessions (session, session_id, title, cwd, relation, parent, usage_label, config, authority, revision, branch, generation, leaf, frame, seq, chain, turn_index, usage, created_at, updated_at, archived, sum)
SELECT session, session_id, title, cwd, relation, parent, usage_label, config, authority, revision, branch, generation, leaf, frame, seq, chain, turn_index, usage, created_at, updated_at, archived, row_sum('sessions(session,session_id,title,cwd,relation,parent,usage_label,config,authority,revision,branch,generation,leaf,frame,seq,chain,turn_index,usage,created_at,updated_at,archived)', session, session_id, title, cwd, relation, parent, usage_label, config, authority, revision, branch, generation, leaf, frame, seq, chain, turn_index, usage, created_at, updated_at, archived)
FROM old_sessions;
DROP TABLE old_sessions;
CREATE INDEX sessions_by_update ON sessions (updated_at DESC, session DESC);
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL;

CREATE TABLE old_first_inputs AS SELECT * FROM first_inputs;
DROP TABLE first_inputs;
CREATE TABLE first_inputs (
  session INTEGER PRIMARY KEY REFERENCES sessions (session) ON DELETE CASCADE,
  body    BLOB NOT NULL,
  sum     INTEGER NOT NULL
) STRICT;
INSERT INTO first_inputs (session, body, sum)
SELECT session, body, row_sum('first_inputs(session,body)', session, body)
FROM old_first_inputs;
DROP TABLE old_first_inputs;

CREATE TABLE old_deleted_sessions AS SELECT * FROM deleted_sessions;
DROP TABLE deleted_sessions;
CREATE TABLE deleted_sessions (
  session_id TEXT PRIMARY KEY,
  deleted_at INTEGER NOT NULL,
  sum        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO deleted_sessions (session_id, deleted_at, sum)
SELECT session_id, deleted_at, row_sum('deleted_sessions(session_id,deleted_at)', session_id, deleted_at)
FROM old_deleted_sessions;
DROP TABLE old_deleted_sessions;

CREATE TABLE old_branches AS SELECT * FROM branches;
DROP TABLE branches;
CREATE TABLE branches (
  branch            INTEGER PRIMARY KEY AUTOINCREMENT,
  session           INTEGER,
  parent_branch     INTEGER REFERENCES branches (branch),
  parent_generation INTEGER,
  sum               INTEGER NOT NULL
) STRICT;
INSERT INTO branches (branch, session, parent_branch, parent_generation, sum)
SELECT branch, session, parent_branch, parent_generation, row_sum('branches(branch,session,parent_branch,parent_generation)', branch, session, parent_branch, parent_generation)
FROM old_branches;
DROP TABLE old_branches;
CREATE INDEX branches_by_parent ON branches (parent_branch);
CREATE INDEX branches_by_session ON branches (session);

CREATE TABLE old_nodes AS SELECT * FROM nodes;
DROP TABLE nodes;
CREATE TABLE nodes (
  place   INTEGER PRIMARY KEY,
  node_id TEXT NOT NULL UNIQUE,
  frame   TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  at      INTEGER NOT NULL,
  body    BLOB NOT NULL,
  sum     INTEGER NOT NULL
) STRICT;
INSERT INTO nodes (place, node_id, frame, turn_id, at, body, sum)
SELECT place, node_id, frame, turn_id, at, body, row_sum('nodes(place,node_id,frame,turn_id,at,body)', place, node_id, frame, turn_id, at, body)
FROM old_nodes;
DROP TABLE old_nodes;

CREATE TABLE old_pins AS SELECT * FROM pins;
DROP TABLE pins;
CREATE TABLE pins (
  session INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  node_id TEXT NOT NULL,
  place   INTEGER NOT NULL,
  reason  TEXT NOT NULL,
  at      INTEGER NOT NULL,
  sum     INTEGER NOT NULL,
  PRIMARY KEY (session, node_id)
) STRICT, WITHOUT ROWID;
INSERT INTO pins (session, node_id, place, reason, at, sum)
SELECT session, node_id, place, reason, at, row_sum('pins(session,node_id,place,reason,at)', session, node_id, place, reason, at)
FROM old_pins;
DROP TABLE old_pins;

CREATE TABLE old_turns AS SELECT * FROM turns;
DROP TABLE turns;
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
INSERT INTO turns (turn, turn_id, session, state, incarnation, cancel, report, accepted_at, started_at, sum)
SELECT turn, turn_id, session, state, incarnation, cancel, report, accepted_at, started_at, row_sum('turns(turn,turn_id,session,state,incarnation,cancel,report,accepted_at,started_at)', turn, turn_id, session, state, incarnation, cancel, report, accepted_at, started_at)
FROM old_turns;
DROP TABLE old_turns;
CREATE INDEX turns_by_session ON turns (session, turn);
CREATE INDEX turns_open ON turns (session, turn) WHERE state = 'queued' OR state = 'running' OR state = 'waiting';

CREATE TABLE old_inputs AS SELECT * FROM inputs;
DROP TABLE inputs;
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
INSERT INTO inputs (input, input_id, session, turn_id, state, boundary, source, stream, ordinal, refused, body, plugin_inputs, at, sum)
SELECT input, input_id, session, turn_id, state, boundary, source, stream, ordinal, refused, body, plugin_inputs, at, row_sum('inputs(input,input_id,session,turn_id,state,boundary,source,stream,ordinal,refused,body,plugin_inputs,at)', input, input_id, session, turn_id, state, boundary, source, stream, ordinal, refused, body, plugin_inputs, at)
FROM old_inputs;
DROP TABLE old_inputs;
CREATE UNIQUE INDEX inputs_by_source ON inputs (session, source) WHERE source <> '';
CREATE INDEX inputs_by_stream ON inputs (session, stream, ordinal) WHERE stream <> '';
CREATE INDEX inputs_pending ON inputs (session, input) WHERE
  state = 'pendingActive' OR state = 'deferredNextTurn' OR state = 'queued' OR state = 'accepted';

CREATE TABLE old_effects AS SELECT * FROM effects;
DROP TABLE effects;
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
INSERT INTO effects (session, turn_id, effect, ordinal, kind, state, hash, body, sum)
SELECT session, turn_id, effect, ordinal, kind, state, hash, body, row_sum('effects(session,turn_id,effect,ordinal,kind,state,hash,body)', session, turn_id, effect, ordinal, kind, state, hash, body)
FROM old_effects;
DROP TABLE old_effects;
CREATE INDEX effects_by_session ON effects (session);

CREATE TABLE old_usage AS SELECT * FROM usage;
DROP TABLE usage;
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
INSERT INTO usage (operation, ordinal, session, source, model, input, output, cache_read, cache_write, reasoning, cost, calls, unknown, sum)
SELECT operation, ordinal, session, source, model, input, output, cache_read, cache_write, reasoning, cost, calls, unknown, row_sum('usage(operation,ordinal,session,source,model,input,output,cache_read,cache_write,reasoning,cost,calls,unknown)', operation, ordinal, session, source, model, input, output, cache_read, cache_write, reasoning, cost, calls, unknown)
FROM old_usage;
DROP TABLE old_usage;

CREATE TABLE old_receipts AS SELECT * FROM receipts;
DROP TABLE receipts;
CREATE TABLE receipts (
  key     TEXT PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 256),
  session INTEGER REFERENCES sessions (session),
  hash    BLOB NOT NULL,
  result  BLOB,
  at      INTEGER NOT NULL,
  sum     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO receipts (key, session, hash, result, at, sum)
SELECT key, session, hash, result, at, row_sum('receipts(key,session,hash,result,at)', key, session, hash, result, at)
FROM old_receipts;
DROP TABLE old_receipts;
CREATE INDEX receipts_by_session ON receipts (session);

CREATE TABLE old_decisions AS SELECT * FROM decisions;
DROP TABLE decisions;
CREATE TABLE decisions (
  decision_id TEXT PRIMARY KEY,
  session     INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  turn_id     TEXT NOT NULL,
  open        INTEGER NOT NULL,
  body        BLOB NOT NULL,
  sum         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO decisions (decision_id, session, turn_id, open, body, sum)
SELECT decision_id, session, turn_id, open, body, row_sum('decisions(decision_id,session,turn_id,open,body)', decision_id, session, turn_id, open, body)
FROM old_decisions;
DROP TABLE old_decisions;
CREATE INDEX decisions_open ON decisions (session) WHERE open = 1;
CREATE INDEX decisions_by_session ON decisions (session);
CREATE INDEX decisions_by_turn ON decisions (turn_id);

CREATE TABLE old_snapshots AS SELECT * FROM snapshots;
DROP TABLE snapshots;
CREATE TABLE snapshots (
  session INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  name    TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 256),
  node_id TEXT NOT NULL,
  place   INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  sum     INTEGER NOT NULL,
  PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;
INSERT INTO snapshots (session, name, node_id, place, at, sum)
SELECT session, name, node_id, place, at, row_sum('snapshots(session,name,node_id,place,at)', session, name, node_id, place, at)
FROM old_snapshots;
DROP TABLE old_snapshots;

CREATE TABLE old_components AS SELECT * FROM components;
DROP TABLE components;
CREATE TABLE components (
  session  INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  snapshot TEXT NOT NULL,
  name     TEXT NOT NULL,
  digest   TEXT NOT NULL,
  body     BLOB,
  sum      INTEGER NOT NULL,
  PRIMARY KEY (session, snapshot, name)
) STRICT, WITHOUT ROWID;
INSERT INTO components (session, snapshot, name, digest, body, sum)
SELECT session, snapshot, name, digest, body, row_sum('components(session,snapshot,name,digest,body)', session, snapshot, name, digest, body)
FROM old_components;
DROP TABLE old_components;
CREATE INDEX components_in_blobs ON components (digest) WHERE body IS NULL;

CREATE TABLE old_blob_refs AS SELECT * FROM blob_refs;
DROP TABLE blob_refs;
CREATE TABLE blob_refs (
  session INTEGER NOT NULL REFERENCES sessions (session) ON DELETE CASCADE,
  digest  TEXT NOT NULL REFERENCES blobs (digest),
  sum     INTEGER NOT NULL,
  PRIMARY KEY (session, digest)
) STRICT, WITHOUT ROWID;
INSERT INTO blob_refs (session, digest, sum)
SELECT session, digest, row_sum('blob_refs(session,digest)', session, digest)
FROM old_blob_refs;
DROP TABLE old_blob_refs;
CREATE INDEX blob_refs_by_digest ON blob_refs (digest);

CREATE TABLE old_approvals AS SELECT * FROM approvals;
DROP TABLE approvals;
CREATE TABLE approvals (
  cwd     TEXT NOT NULL,
  tool    TEXT NOT NULL,
  subject TEXT NOT NULL,
  by      TEXT NOT NULL,
  at      INTEGER NOT NULL,
  sum     INTEGER NOT NULL,
  PRIMARY KEY (cwd, tool, subject)
) STRICT, WITHOUT ROWID;
INSERT INTO approvals (cwd, tool, subject, by, at, sum)
SELECT cwd, tool, subject, by, at, row_sum('approvals(cwd,tool,subject,by,at)', cwd, tool, subject, by, at)
FROM old_approvals;
DROP TABLE old_approvals;

CREATE TABLE old_plugin_facts AS SELECT * FROM plugin_facts;
DROP TABLE plugin_facts;
CREATE TABLE plugin_facts (
  kind TEXT NOT NULL,
  key  TEXT NOT NULL,
  body BLOB NOT NULL,
  at   INTEGER NOT NULL,
  sum  INTEGER NOT NULL,
  PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
INSERT INTO plugin_facts (kind, key, body, at, sum)
SELECT kind, key, body, at, row_sum('plugin_facts(kind,key,body,at)', kind, key, body, at)
FROM old_plugin_facts;
DROP TABLE old_plugin_facts;

CREATE TABLE old_tasks AS SELECT * FROM tasks;
DROP TABLE tasks;
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
INSERT INTO tasks (task, session, task_id, kind, external, hidden, ended, change, body, sum)
SELECT task, session, task_id, kind, external, hidden, ended, change, body, row_sum('tasks(task,session,task_id,kind,external,hidden,ended,change,body)', task, session, task_id, kind, external, hidden, ended, change, body)
FROM old_tasks;
DROP TABLE old_tasks;
CREATE INDEX tasks_live ON tasks (session) WHERE ended = 0;

CREATE TABLE old_task_viewers AS SELECT * FROM task_viewers;
DROP TABLE task_viewers;
CREATE TABLE task_viewers (
  viewer TEXT NOT NULL,
  task   INTEGER NOT NULL REFERENCES tasks (task) ON DELETE CASCADE,
  sum    INTEGER NOT NULL,
  PRIMARY KEY (viewer, task)
) STRICT, WITHOUT ROWID;
INSERT INTO task_viewers (viewer, task, sum)
SELECT viewer, task, row_sum('task_viewers(viewer,task)', viewer, task)
FROM old_task_viewers;
DROP TABLE old_task_viewers;
CREATE INDEX task_viewers_by_task ON task_viewers (task);

CREATE TABLE old_task_events AS SELECT * FROM task_events;
DROP TABLE task_events;
CREATE TABLE task_events (
  task    INTEGER NOT NULL REFERENCES tasks (task) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  key     TEXT NOT NULL,
  body    BLOB NOT NULL,
  sum     INTEGER NOT NULL,
  PRIMARY KEY (task, ordinal)
) STRICT, WITHOUT ROWID;
INSERT INTO task_events (task, ordinal, key, body, sum)
SELECT task, ordinal, key, body, row_sum('task_events(task,ordinal,key,body)', task, ordinal, key, body)
FROM old_task_events;
DROP TABLE old_task_events;
CREATE UNIQUE INDEX task_events_by_key ON task_events (task, key) WHERE key <> '';

CREATE TABLE old_triggers AS SELECT * FROM triggers;
DROP TABLE triggers;
CREATE TABLE triggers (
  trigger    INTEGER PRIMARY KEY,
  trigger_id TEXT NOT NULL UNIQUE,
  session    INTEGER REFERENCES sessions (session) ON DELETE CASCADE,
  key        TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 256),
  ticked_at  INTEGER NOT NULL,
  body       BLOB NOT NULL,
  sum        INTEGER NOT NULL
) STRICT;
INSERT INTO triggers (trigger, trigger_id, session, key, ticked_at, body, sum)
SELECT trigger, trigger_id, session, key, ticked_at, body, row_sum('triggers(trigger,trigger_id,session,key,ticked_at,body)', trigger, trigger_id, session, key, ticked_at, body)
FROM old_triggers;
DROP TABLE old_triggers;
CREATE UNIQUE INDEX triggers_by_key ON triggers (coalesce(session, 0), key);
CREATE INDEX triggers_by_session ON triggers (session) WHERE session IS NOT NULL;

CREATE TABLE old_occurrences AS SELECT * FROM occurrences;
DROP TABLE occurrences;
CREATE TABLE occurrences (
  occurrence    INTEGER PRIMARY KEY AUTOINCREMENT,
  occurrence_id TEXT NOT NULL UNIQUE,
  type          TEXT NOT NULL,
  body          BLOB NOT NULL,
  sum           INTEGER NOT NULL
) STRICT;
INSERT INTO occurrences (occurrence, occurrence_id, type, body, sum)
SELECT occurrence, occurrence_id, type, body, row_sum('occurrences(occurrence,occurrence_id,type,body)', occurrence, occurrence_id, type, body)
FROM old_occurrences;
DROP TABLE old_occurrences;
CREATE INDEX occurrences_by_type ON occurrences (type, occurrence);

CREATE TABLE old_deliveries AS SELECT * FROM deliveries;
DROP TABLE deliveries;
CREATE TABLE deliveries (
  occurrence INTEGER NOT NULL REFERENCES occurrences (occurrence) ON DELETE CASCADE,
  trigger_id TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('reserved', 'delivered', 'refused', 'failed', 'targetGone')),
  body       BLOB NOT NULL,
  action     BLOB,
  sum        INTEGER NOT NULL,
  PRIMARY KEY (occurrence, trigger_id)
) STRICT, WITHOUT ROWID;
INSERT INTO deliveries (occurrence, trigger_id, state, body, action, sum)
SELECT occurrence, trigger_id, state, body, action, row_sum('deliveries(occurrence,trigger_id,state,body,action)', occurrence, trigger_id, state, body, action)
FROM old_deliveries;
DROP TABLE old_deliveries;
CREATE INDEX deliveries_reserved ON deliveries (occurrence) WHERE state = 'reserved';
CREATE INDEX deliveries_by_trigger ON deliveries (trigger_id, occurrence);

CREATE TABLE old_workspaces AS SELECT * FROM workspaces;
DROP TABLE workspaces;
CREATE TABLE workspaces (
  workspace INTEGER PRIMARY KEY AUTOINCREMENT,
  root      TEXT NOT NULL UNIQUE,
  sum       INTEGER NOT NULL
) STRICT;
INSERT INTO workspaces (workspace, root, sum)
SELECT workspace, root, row_sum('workspaces(workspace,root)', workspace, root)
FROM old_workspaces;
DROP TABLE old_workspaces;

CREATE TABLE old_file_copies AS SELECT * FROM file_copies;
DROP TABLE file_copies;
CREATE TABLE file_copies (
  digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
  pack   TEXT NOT NULL,
  at     INTEGER NOT NULL,
  length INTEGER NOT NULL,
  sum    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO file_copies (digest, pack, at, length, sum)
SELECT digest, pack, at, length, row_sum('file_copies(digest,pack,at,length)', digest, pack, at, length)
FROM old_file_copies;
DROP TABLE old_file_copies;
CREATE INDEX file_copies_by_pack ON file_copies (pack);

CREATE TABLE old_workspace_files AS SELECT * FROM workspace_files;
DROP TABLE workspace_files;
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
INSERT INTO workspace_files (workspace, path, kind, mode, size, modified, changed, inode, link, problem, digest, sum)
SELECT workspace, path, kind, mode, size, modified, changed, inode, link, problem, digest, row_sum('workspace_files(workspace,path,kind,mode,size,modified,changed,inode,link,problem,digest)', workspace, path, kind, mode, size, modified, changed, inode, link, problem, digest)
FROM old_workspace_files;
DROP TABLE old_workspace_files;
CREATE INDEX workspace_files_by_copy ON workspace_files (digest) WHERE digest IS NOT NULL;

CREATE TABLE old_file_points AS SELECT * FROM file_points;
DROP TABLE file_points;
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
INSERT INTO file_points (point, point_id, session, workspace, turn_id, open, body, journal, sum)
SELECT point, point_id, session, workspace, turn_id, open, body, journal, row_sum('file_points(point,point_id,session,workspace,turn_id,open,body,journal)', point, point_id, session, workspace, turn_id, open, body, journal)
FROM old_file_points;
DROP TABLE old_file_points;
CREATE INDEX file_points_by_session ON file_points (session, point);
CREATE INDEX file_points_by_workspace ON file_points (workspace);
CREATE INDEX file_points_rewinding ON file_points (session) WHERE journal IS NOT NULL;

CREATE TABLE old_file_changes AS SELECT * FROM file_changes;
DROP TABLE file_changes;
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
INSERT INTO file_changes (point, step, path, before, after, body, sum)
SELECT point, step, path, before, after, body, row_sum('file_changes(point,step,path,before,after,body)', point, step, path, before, after, body)
FROM old_file_changes;
DROP TABLE old_file_changes;
CREATE INDEX file_changes_before ON file_changes (before) WHERE before IS NOT NULL;
CREATE INDEX file_changes_after ON file_changes (after) WHERE after IS NOT NULL;
CREATE INDEX file_changes_by_step ON file_changes (step);

-- Restore the row numbers already assigned, which must not be reused. Dropping the tables has deleted them.
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence (name, seq) SELECT name, seq FROM old_numbers;
DROP TABLE old_numbers;
