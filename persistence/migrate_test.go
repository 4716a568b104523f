package persistence

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"lashd"
)

// migrateEnv names the directory in which a copy of this test binary migrates a database and is killed.
const migrateEnv = "LASHD_TEST_MIGRATE"

const addedTables = `
CREATE TABLE second (
  x INTEGER PRIMARY KEY
) STRICT;
CREATE TABLE third (
  y INTEGER PRIMARY KEY
) STRICT;
`

// next is a made-up schema two versions ahead of the real one.
func next() definition {
	tables := strings.SplitAfter(addedTables, "STRICT;\n")
	return definition{version: SchemaVersion + 2, schema: lashd.Schema + addedTables, migrations: fstest.MapFS{
		"migrations/0004.sql": {Data: []byte(tables[0])},
		"migrations/0005.sql": {Data: []byte(tables[1])},
	}}
}

func oldDatabase(t *testing.T) (dir string) {
	s, stop := start(t, quiet(t.TempDir()))
	commit(t, s, rootCommit("ses_a"))
	commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(1)}})
	stop()
	return s.Dir()
}

func TestMigrate(t *testing.T) {
	t.Run("runtime/P16 an older schema is migrated after a backup", func(t *testing.T) {
		dir := oldDatabase(t)
		s, err := openAs(t.Context(), quiet(dir), next())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(run(t, s))
		if session(t, s, "ses_a").Seq != 1 || count(t, s, "SELECT count(*) FROM third") != 0 {
			t.Error("the migrated database is not what was expected")
		}
		commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(2)}})
		verified(t, s)

		restored := t.TempDir()
		data, err := os.ReadFile(filepath.Join(dir, "lashd-schema3.backup.db"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(restored, "lashd.db"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if old := open(t, restored); session(t, old, "ses_a").Seq != 1 {
			t.Error("the backup lacks an event")
		}
	})
	t.Run("runtime/P16 a newer schema is rejected and left unchanged", func(t *testing.T) {
		dir := oldDatabase(t)
		s, err := openAs(t.Context(), quiet(dir), next())
		if err != nil {
			t.Fatal(err)
		}
		run(t, s)()
		before := directory(t, dir)
		if _, err := Open(t.Context(), quiet(dir)); !errors.Is(err, ErrNewerSchema) || !strings.Contains(err.Error(), "schema 5, but this version of lashd supports up to 3") {
			t.Errorf("open gave %v", err)
		}
		same(t, before, directory(t, dir))
	})
	t.Run("runtime/P16 a newer schema in the log only is rejected and left unchanged", func(t *testing.T) {
		from := oldDatabase(t)
		s, err := openAs(t.Context(), quiet(from), next())
		if err != nil {
			t.Fatal(err)
		}
		// The state after a crash right after the migration.
		dir := t.TempDir()
		for _, name := range []string{"lashd.db", "lashd.db-wal"} {
			if err := os.WriteFile(filepath.Join(dir, name), directory(t, from)[name], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		run(t, s)()
		before := directory(t, dir)
		if _, err := Open(t.Context(), quiet(dir)); !errors.Is(err, ErrNewerSchema) {
			t.Errorf("open gave %v", err)
		}
		same(t, before, directory(t, dir))
	})
	t.Run("runtime/P16 a failed step leaves the old version", func(t *testing.T) {
		dir := oldDatabase(t)
		def := next()
		def.migrations = fstest.MapFS{"migrations/0004.sql": {Data: []byte("CREATE TABLE second (x) STRICT")}}
		if _, err := openAs(t.Context(), quiet(dir), def); err == nil {
			t.Error("a broken migration was accepted")
		}
		if s := open(t, dir); session(t, s, "ses_a").Seq != 1 {
			t.Error("the old version lacks an event")
		}
	})
	t.Run("runtime/P16 kill -9 during a migration leaves the old version", func(t *testing.T) {
		dir := oldDatabase(t)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), migrateEnv+"="+dir)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the migration was not killed: %v\n%s", err, out)
		}
		if s := open(t, dir); session(t, s, "ses_a").Seq != 1 {
			t.Error("the old version lacks an event")
		}
	})
	t.Run("runtime/P16 files that are no lashd database are rejected", func(t *testing.T) {
		for name, data := range map[string][]byte{"text": []byte(strings.Repeat("not a database ", 100)), "short": []byte("x")} {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "lashd.db"), data, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(t.Context(), quiet(dir)); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: open gave %v", name, err)
			}
			if got := directory(t, dir); len(got) != 1 || !bytes.Equal(got["lashd.db"], data) {
				t.Errorf("%s: the file was touched", name)
			}
		}
	})
	t.Run("reliability/T16 a database with an SQL trigger is rejected", func(t *testing.T) {
		dir := oldDatabase(t)
		s := must(Open(t.Context(), quiet(dir)))
		if _, err := s.stmts.conn.ExecContext(t.Context(), "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END"); err != nil {
			t.Fatal(err)
		}
		run(t, s)()
		if _, err := Open(t.Context(), quiet(dir)); !errors.Is(err, ErrOtherSchema) {
			t.Errorf("open gave %v", err)
		}
	})
}

// dyingFS kills the process when the last step is read. The step before it has already run.
type dyingFS struct{ fs.FS }

func (d dyingFS) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "0005.sql") {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		panic(err) // not reached, or else the test sees another end than by a signal
	}
	return d.FS.Open(name)
}

func migrateAndDie() {
	def := next()
	def.migrations = dyingFS{def.migrations}
	_, err := openAs(context.Background(), quiet(os.Getenv(migrateEnv)), def)
	panic(err)
}

// directory reads a directory whose database is not open in this process.
func directory(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, e := range must(os.ReadDir(dir)) {
		if name := e.Name(); !strings.HasSuffix(name, "-shm") && !e.IsDir() {
			files[name] = must(os.ReadFile(filepath.Join(dir, name)))
		}
	}
	return files
}

func same(t *testing.T, before, after map[string][]byte) {
	t.Helper()
	for name := range after {
		if _, ok := before[name]; !ok && len(after[name]) > 0 {
			t.Errorf("%s was made", name)
		}
	}
	for name, data := range before {
		if !bytes.Equal(data, after[name]) {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestMigrateReal(t *testing.T) {
	t.Run("outside/13 rows of schema 1 get checksums", func(t *testing.T) {
		dir := t.TempDir()
		db := must(sql.Open("sqlite", fileURL(filepath.Join(dir, "lashd.db"), nil)))
		_, err := db.ExecContext(t.Context(), "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA page_size = 2048; PRAGMA journal_mode = WAL;"+string(must(os.ReadFile("testdata/schema1.sql"))))
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir)
		if r := verified(t, s); r.Sessions != 1 || r.Events != 18 {
			t.Errorf("%+v", r)
		}
		if row := session(t, s, "ses_a"); row.Title != "another title" {
			t.Errorf("title %q", row.Title)
		}
		commit(t, s, rootCommit("ses_c"))
		if row := session(t, s, "ses_c"); row.Key != 3 {
			t.Errorf("a new session has number %d, want 3: 2 was used by one that is deleted", row.Key)
		}
		commit(t, s, turnLike("ses_a", 100))
		verified(t, s)
	})
}
