//go:build unix

package upgrade

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// baseVariable, dirVariable and stopVariable make the test binary upgrade a directory and stop before a step, to be killed there.
const baseVariable, dirVariable, stopVariable = "UPGRADE_TEST_BASE", "UPGRADE_TEST_DIR", "UPGRADE_TEST_STOP"

func TestMain(m *testing.M) {
	if os.Getenv(baseVariable) == "" {
		os.Exit(m.Run())
	}
	c := Config{BaseURL: os.Getenv(baseVariable), Dir: os.Getenv(dirVariable), Current: "0.1.0", System: anySystem, Report: func(step string) {
		if strings.HasPrefix(step+"\n", os.Getenv(stopVariable)) {
			fmt.Println(step)
			select {}
		}
	}}
	r, err := c.Newest(context.Background())
	if err == nil {
		err = c.Install(context.Background(), r)
	}
	fmt.Println(err)
}

// program is a script that prints the name and the version of a program.
func program(name, version string) string {
	return "#!/bin/sh\necho " + name + " " + version + "\n"
}

// archive returns a release archive with these files, in the order of their names.
func archive(t *testing.T, system string, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	tape := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: "lash_0.2.0_" + system + "/" + name, Mode: 0o755, Size: int64(len(files[name])), Typeflag: tar.TypeReg}
		if err := tape.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := tape.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tape.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const anySystem = "plan9_test"

// published serves a release: its checksums, and whatever answer does for the archive.
func published(t *testing.T, system string, content []byte, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/checksums.txt":
			fmt.Fprintf(w, "%064d  lash_0.2.0_linux_other.tar.gz\n%x  lash_0.2.0_%s.tar.gz\n", 0, sha256.Sum256(content), system)
		case "/lash_0.2.0_" + system + ".tar.gz":
			answer(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// serving answers with content.
func serving(content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write(content) }
}

// release returns an archive of version 0.2.0. Its completions have the name of a program.
func release(t *testing.T, system string) []byte {
	return archive(t, system, map[string]string{
		"README.md": "text", "lash": program("lash", "0.2.0"), "lashd": program("lashd", "0.2.0"),
		"a/completions/lash": "complete", "share/bash-completion/completions/lash": "complete",
	})
}

// installed returns a directory with both programs of version 0.1.0.
func installed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(program(name, "0.1.0")), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// versions returns what the programs in a directory print, and fails the test if the directory has other files.
func versions(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	for _, name := range []string{"lash", "lashd"} {
		out, err := exec.Command(filepath.Join(dir, name), "version").CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all = append(all, strings.TrimSpace(string(out)))
	}
	return strings.Join(all, ", ")
}

func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// upgrade runs a whole upgrade from version 0.1.0.
func upgrade(t *testing.T, base, dir string) error {
	t.Helper()
	c := Config{BaseURL: base, Dir: dir, Current: "0.1.0", System: anySystem}
	r, err := c.Newest(t.Context())
	if err != nil {
		return err
	}
	return c.Install(t.Context(), r)
}

const old, new = "lash 0.1.0, lashd 0.1.0", "lash 0.2.0, lashd 0.2.0"

func TestUpgrade(t *testing.T) {
	t.Run("part/12 both programs are replaced, and nothing else stays", func(t *testing.T) {
		content, dir := release(t, anySystem), installed(t)
		base := published(t, anySystem, content, serving(content))
		c := Config{BaseURL: base + "/", Dir: dir, Current: "0.1.0", System: anySystem}
		r, err := c.Newest(t.Context())
		if err != nil || r.Version != "0.2.0" || !c.Newer(r) {
			t.Fatalf("%+v, %v", r, err)
		}
		if got := versions(t, dir); got != old {
			t.Errorf("after a check: %s", got)
		}
		if err := c.Install(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if got, files := versions(t, dir), left(t, dir); got != new || len(files) != 2 {
			t.Errorf("%s, %q", got, files)
		}
		if c.Current = "0.10.0"; c.Newer(r) {
			t.Error("0.2.0 is newer than 0.10.0")
		}
	})
	t.Run("part/12 the files of an upgrade that runs at the same time stay", func(t *testing.T) {
		content, dir := release(t, anySystem), installed(t)
		other := filepath.Join(dir, tempPrefix+"other")
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := upgrade(t, published(t, anySystem, content, serving(content)), dir); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(other); err != nil {
			t.Error(err)
		}
	})
}

func TestFailedUpgrade(t *testing.T) {
	good := release(t, anySystem)
	for name, x := range map[string]struct {
		content []byte // what the checksum is of
		answer  http.HandlerFunc
		want    string
	}{
		"the checksum is wrong":    {good, serving(archive(t, anySystem, map[string]string{"lash": "bad", "lashd": "bad"})), "the checksum is wrong: it is "},
		"the archive is not found": {good, http.NotFound, "the server answered 404 Not Found"},
		"the download is cut": {good, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(good)))
			w.Write(good[:len(good)/2])
		}, "unexpected EOF"},
		"a program is missing":                  {archive(t, anySystem, map[string]string{"lashd": program("lashd", "0.2.0")}), nil, "it has no program lash; nothing was changed"},
		"a program does not run here":           {archive(t, anySystem, map[string]string{"lash": program("lash", "0.2.0"), "lashd": "\x7fELF"}), nil, "the new lashd does not run on this machine"},
		"a program is of another version":       {archive(t, anySystem, map[string]string{"lash": program("lash", "0.3.0"), "lashd": program("lashd", "0.2.0")}), nil, `the new lash says that it is "lash 0.3.0", not "lash 0.2.0"`},
		"the archive is no archive":             {[]byte("hello"), nil, "nothing was changed"},
		"a redirect leads to an unsafe address": {good, http.RedirectHandler("http://192.0.2.1/x", http.StatusFound).ServeHTTP, "over https only"},
	} {
		t.Run("part/12 the old programs stay if "+name, func(t *testing.T) {
			if x.answer == nil {
				x.answer = serving(x.content)
			}
			dir := installed(t)
			err := upgrade(t, published(t, anySystem, x.content, x.answer), dir)
			if err == nil || !strings.Contains(err.Error(), x.want) || !strings.HasSuffix(err.Error(), "; nothing was changed") {
				t.Errorf("%v, want %q", err, x.want)
			}
			if got, files := versions(t, dir), left(t, dir); got != old || len(files) != 2 {
				t.Errorf("%s, %q", got, files)
			}
		})
	}
	t.Run("part/12 a plain http address of another machine is refused", func(t *testing.T) {
		if err := upgrade(t, "http://192.0.2.1", installed(t)); err == nil || !strings.Contains(err.Error(), "over https only") {
			t.Error(err)
		}
	})
	t.Run("part/12 a release without this system says so", func(t *testing.T) {
		_, err := Config{BaseURL: published(t, anySystem, good, nil), System: "plan9_mips"}.Newest(t.Context())
		if err == nil || !strings.Contains(err.Error(), "has no archive for plan9_mips") {
			t.Error(err)
		}
	})
}

func TestHalfAnUpgrade(t *testing.T) {
	t.Run("part/12 a lash that cannot be replaced stays beside the new lashd, and the error says so", func(t *testing.T) {
		content, dir := release(t, anySystem), installed(t)
		if err := errors.Join(os.Remove(filepath.Join(dir, "lash")), os.Mkdir(filepath.Join(dir, "lash"), 0o700)); err != nil {
			t.Fatal(err)
		}
		err := upgrade(t, published(t, anySystem, content, serving(content)), dir)
		if err == nil || !strings.HasPrefix(err.Error(), "lashd is now 0.2.0, but lash could not be replaced: ") || !strings.HasSuffix(err.Error(), "; they work together; run lash upgrade again") {
			t.Error(err)
		}
	})
}

func TestUpgradeWithoutPermission(t *testing.T) {
	t.Run("part/12 a directory that cannot be written is reported before anything is downloaded", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "missing")
		if os.Geteuid() != 0 {
			dir = installed(t)
			if err := os.Chmod(dir, 0o500); err != nil {
				t.Fatal(err)
			}
		}
		base := published(t, anySystem, release(t, anySystem), func(http.ResponseWriter, *http.Request) { t.Error("the archive was downloaded") })
		if err := upgrade(t, base, dir); err == nil || !strings.Contains(err.Error(), "cannot write to "+dir) {
			t.Error(err)
		}
	})
}

func TestKilledUpgrade(t *testing.T) {
	content := release(t, anySystem)
	for stop, want := range map[string]string{
		"Downloading": old, "Checking": old, "Replacing lashd\n": old, "Replacing lash\n": "lash 0.1.0, lashd 0.2.0",
	} {
		t.Run("part/12 after a kill before "+strings.TrimSpace(stop)+" the programs work, and the next upgrade completes it", func(t *testing.T) {
			dir, base := installed(t), published(t, anySystem, content, serving(content))
			kill(t, base, dir, stop)
			if got := versions(t, dir); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			age(t, dir)
			if err := upgrade(t, base, dir); err != nil {
				t.Error(err)
			}
			if got, files := versions(t, dir), left(t, dir); got != new || len(files) != 2 {
				t.Errorf("%s, %q", got, files)
			}
		})
	}
}

// kill upgrades a directory in another process, and kills it before a step.
func kill(t *testing.T, base, dir, stop string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), baseVariable+"="+base, dirVariable+"="+dir, stopVariable+"="+stop)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if !strings.HasPrefix(line, strings.TrimSpace(stop)) {
		t.Errorf("it stopped at %q, want %q", line, stop)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
}

// age makes all temporary directories look abandoned.
func age(t *testing.T, dir string) {
	t.Helper()
	for _, name := range left(t, dir) {
		if strings.HasPrefix(name, tempPrefix) {
			before := time.Now().Add(-2 * abandoned)
			if err := os.Chtimes(filepath.Join(dir, name), before, before); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestOwnerOfPrograms(t *testing.T) {
	for path, want := range map[string]string{
		"/opt/homebrew/Cellar/lash/0.1.0/bin/lash": "Homebrew installed /opt/homebrew/Cellar/lash/0.1.0/bin/lash; upgrade it with: brew upgrade lash",
		"/nix/store/abc-lash/bin/lash":             "nix profile upgrade lash",
		"/usr/bin/lash":                            "upgrade it with the package manager",
		"/home/ann/go/bin/lash":                    "go install ./cmd/lash ./cmd/lashd",
	} {
		t.Run("part/12 an upgrade says what to do with "+path, func(t *testing.T) {
			if err := checkOwner(path); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
	t.Run("part/12 a released program is replaced where its links lead", func(t *testing.T) {
		Released = "true"
		defer func() { Released = "" }()
		dir, link := installed(t), filepath.Join(t.TempDir(), "lash")
		if err := os.Symlink(filepath.Join(dir, "lash"), link); err != nil {
			t.Fatal(err)
		}
		if got, err := Dir(link); err != nil || got != dir {
			t.Errorf("%q, %v, want %q", got, err, dir)
		}
		if err := os.Remove(filepath.Join(dir, "lashd")); err != nil {
			t.Fatal(err)
		}
		if _, err := Dir(link); err == nil || !strings.Contains(err.Error(), "there is no program lashd in "+dir) {
			t.Error(err)
		}
	})
}
