-- Find the inputs of the sessions of a directory.

CREATE INDEX sessions_by_cwd ON sessions (cwd);
CREATE INDEX inputs_by_session ON inputs (session);
