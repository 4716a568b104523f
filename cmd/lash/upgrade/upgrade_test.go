//go:build unix

package upgrade

import (
	"archive/tar"
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
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lashd/cmd/internal/installation"
	"lashd/test/skip"
)

// Environment variables that make the test binary upgrade or install in a prefix.
const baseVariable, prefixVariable, releaseVariable = "UPGRADE_TEST_BASE", "UPGRADE_TEST_PREFIX", "UPGRADE_TEST_RELEASE"

// The main thread makes the system calls of an upgrade, so that strace can count them.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	to := installation.Installation{Prefix: os.Getenv(prefixVariable)}
	var err error
	switch base, dir := os.Getenv(baseVariable), os.Getenv(releaseVariable); {
	case base != "":
		err = upgradeTo(context.Background(), base, to)
	case dir != "":
		err = to.Switch(dir, "0.2.0")
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// upgradeTo runs a whole upgrade.
func upgradeTo(ctx context.Context, base string, to installation.Installation) error {
	s := Source{Address: base, System: anySystem}
	r, err := s.Find(ctx, "")
	if err != nil {
		return err
	}
	return s.Install(ctx, r, to)
}

// program is a script that prints the name and the version of a program. Its command install does what that of lash does.
func program(name, version string) string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return "#!/bin/sh\n[ \"$1\" != install ] || exec env " + prefixVariable + "=\"$3\" " + releaseVariable + "=\"$(dirname \"$(dirname \"$0\")\")\" '" + self + "'\necho " + name + " " + version + "\n"
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
		case "/latest/download/checksums.txt", "/download/v0.2.0/checksums.txt", "/download/v0.3.0/checksums.txt":
			fmt.Fprintf(w, "%064d  lash_0.2.0_linux_other.tar.gz\n%x  lash_0.2.0_%s.tar.gz\n", 0, sha256.Sum256(content), system)
		case "/latest/download/lash_0.2.0_" + system + ".tar.gz", "/download/v0.2.0/lash_0.2.0_" + system + ".tar.gz":
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

// release returns an archive of version 0.2.0.
func release(t *testing.T, system string) []byte {
	return archive(t, system, files("0.2.0"))
}

// files are those of a release. Only version 0.1.0 has a page about old.
func files(version string) map[string]string {
	all := map[string]string{
		"LICENSE": "text", "bin/lash": program("lash", version), "bin/lashd": program("lashd", version),
		"share/man/man1/lash.1": version, "share/bash-completion/completions/lash": "complete",
	}
	if version == "0.1.0" {
		all["share/man/man1/lash-old.1"] = version
	}
	return all
}

// installed returns a prefix with version 0.1.0.
func installed(t *testing.T) installation.Installation {
	t.Helper()
	to := installation.Installation{Prefix: t.TempDir()}
	dir := filepath.Join(to.Lib(), "download-0", "release")
	for name, text := range files("0.1.0") {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(to.Switch(dir, "0.1.0"), os.RemoveAll(filepath.Dir(dir))); err != nil {
		t.Fatal(err)
	}
	return to
}

// versions returns what the programs of an installation print.
func versions(t *testing.T, i installation.Installation) string {
	t.Helper()
	var all []string
	for _, name := range installation.Programs {
		out, err := exec.Command(filepath.Join(i.Prefix, "bin", name), "version").CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all = append(all, strings.TrimSpace(string(out)))
	}
	return strings.Join(all, ", ")
}

// left returns the names in the directory of releases, without the numbers that make them unique.
func left(t *testing.T, i installation.Installation) string {
	t.Helper()
	entries, err := os.ReadDir(i.Lib())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), "-")
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

const old, new = "lash 0.1.0, lashd 0.1.0", "lash 0.2.0, lashd 0.2.0"

func TestUpgrade(t *testing.T) {
	content, to := release(t, anySystem), installed(t)
	base := published(t, anySystem, content, serving(content))
	t.Run("issue/21-3 an upgrade replaces both programs and their pages at once", func(t *testing.T) {
		if got := versions(t, to); got != old {
			t.Errorf("before: %s", got)
		}
		if err := upgradeTo(t.Context(), base+"/", to); err != nil {
			t.Fatal(err)
		}
		if got, files := versions(t, to), left(t, to); got != new || files != "0.1.0 0.2.0 current" {
			t.Errorf("%s, %q", got, files)
		}
		man := filepath.Join(to.Prefix, "share/man/man1")
		if text, err := os.ReadFile(filepath.Join(man, "lash.1")); err != nil || string(text) != "0.2.0" {
			t.Errorf("%q, %v", text, err)
		}
		if _, err := os.Lstat(filepath.Join(man, "lash-old.1")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a page that the new release does not have: %v", err)
		}
	})
	t.Run("issue/21-3 the release before the current one stays, older ones go after an hour", func(t *testing.T) {
		age(t, to)
		if err := upgradeTo(t.Context(), base, to); err != nil {
			t.Fatal(err)
		}
		if files := left(t, to); files != "0.2.0 0.2.0 current" {
			t.Errorf("%q", files)
		}
	})
	t.Run("issue/21-3 a version can be named, and versions are compared by number", func(t *testing.T) {
		s := Source{Address: base, System: anySystem}
		r, err := s.Find(t.Context(), "0.2.0")
		if err != nil || r.Version != "0.2.0" || r.Compare("0.10.0") >= 0 || r.Compare("0.1.9") <= 0 || r.Compare("0.2.0") != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		for version, want := range map[string]string{
			"0.3.0": "has version 0.2.0 instead of 0.3.0", "0.4.0": "the server answered 404 Not Found", "../x": `"../x" is not a version`,
		} {
			if _, err := s.Find(t.Context(), version); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", version, err, want)
			}
		}
	})
	t.Run("issue/21-3 a build without a release address says so", func(t *testing.T) {
		if _, err := (Source{}).Find(t.Context(), ""); !errors.Is(err, errNoAddress) {
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
		"the checksum is wrong":    {good, serving(archive(t, anySystem, files("0.3.0"))), "the checksum is wrong: it is "},
		"the archive is not found": {good, http.NotFound, "the server answered 404 Not Found"},
		"the download is cut": {good, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(good)))
			w.Write(good[:len(good)/2])
		}, "unexpected EOF"},
		"a program is missing":                  {without(t, anySystem, "lash", ""), nil, "bin/lash: no such file or directory"},
		"a program does not run here":           {without(t, anySystem, "lashd", "\x7fELF"), nil, "the new lashd does not run on this machine"},
		"a program is of another version":       {without(t, anySystem, "lash", program("lash", "0.3.0")), nil, `the new lash says that it is "lash 0.3.0", not "lash 0.2.0"`},
		"a name in the archive leads elsewhere": {archive(t, anySystem, map[string]string{"../x": "text"}), nil, "is not inside of"},
		"the archive is no archive":             {[]byte("hello"), nil, "nothing was changed"},
		"a redirect leads to an unsafe address": {good, http.RedirectHandler("http://192.0.2.1/x", http.StatusFound).ServeHTTP, "over https only"},
	} {
		t.Run("issue/21-3 the old programs stay if "+name, func(t *testing.T) {
			if x.answer == nil {
				x.answer = serving(x.content)
			}
			to := installed(t)
			err := upgradeTo(t.Context(), published(t, anySystem, x.content, x.answer), to)
			if err == nil || !strings.Contains(err.Error(), x.want) || !strings.HasSuffix(err.Error(), "; nothing was changed") {
				t.Errorf("%v, want %q", err, x.want)
			}
			if got, files := versions(t, to), left(t, to); got != old || files != "0.1.0 current" {
				t.Errorf("%s, %q", got, files)
			}
		})
	}
	t.Run("issue/21-3 a plain http address of another machine is refused", func(t *testing.T) {
		if err := upgradeTo(t.Context(), "http://192.0.2.1", installed(t)); err == nil || !strings.Contains(err.Error(), "over https only") {
			t.Error(err)
		}
	})
	t.Run("issue/21-3 a server that does not answer is reported", func(t *testing.T) {
		to := installed(t)
		if err := upgradeTo(t.Context(), "http://127.0.0.1:1", to); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Error(err)
		}
	})
	t.Run("issue/21-3 a release without this system says so", func(t *testing.T) {
		s := Source{Address: published(t, anySystem, good, nil), System: "plan9_mips"}
		if _, err := s.Find(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "has no archive for plan9_mips") {
			t.Error(err)
		}
	})
	t.Run("issue/21-3 a program that is not a link of the installation stays", func(t *testing.T) {
		to := installed(t)
		path := filepath.Join(to.Prefix, "bin/lash")
		if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte(program("lash", "9.9.9")), 0o755)); err != nil {
			t.Fatal(err)
		}
		err := upgradeTo(t.Context(), published(t, anySystem, good, serving(good)), to)
		if err == nil || !strings.Contains(err.Error(), path+" was not installed by install.sh; move it away") {
			t.Error(err)
		}
		if got := versions(t, to); got != "lash 9.9.9, lashd 0.1.0" {
			t.Error(got)
		}
	})
}

// without returns a release in which a program has another content, or none.
func without(t *testing.T, system, program, content string) []byte {
	all := files("0.2.0")
	all["bin/"+program] = content
	if content == "" {
		delete(all, "bin/"+program)
	}
	return archive(t, system, all)
}

func TestUpgradeWithoutPermission(t *testing.T) {
	t.Run("issue/21-3 a directory that cannot be written is reported before anything is downloaded", func(t *testing.T) {
		to := installation.Installation{Prefix: filepath.Join(t.TempDir(), "missing")}
		want := "no such file"
		if os.Geteuid() != 0 {
			to, want = installed(t), "run lash upgrade as the user who installed lash"
			if err := os.Chmod(to.Lib(), 0o500); err != nil {
				t.Fatal(err)
			}
		}
		base := published(t, anySystem, release(t, anySystem), func(http.ResponseWriter, *http.Request) { t.Error("the archive was downloaded") })
		if err := upgradeTo(t.Context(), base, to); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	})
}

// changing are the system calls between which an upgrade is killed.
const changing = "mkdirat,renameat,renameat2,symlinkat,unlinkat,fsync,fchmodat,utimensat,openat,write"

// TestKilledUpgrade kills an upgrade before each system call that could change a file. The pair of programs is always of one version.
func TestKilledUpgrade(t *testing.T) {
	strace, err := exec.LookPath("strace")
	skip.Unless(t, "STRACE", err == nil, "strace is not installed")
	content := release(t, anySystem)
	base := published(t, anySystem, content, serving(content))
	for name, start := range map[string]func(*testing.T) installation.Installation{"an upgrade": installed, "a first installation": func(t *testing.T) installation.Installation {
		to := installation.Installation{Prefix: t.TempDir()}
		return to
	}} {
		t.Run("issue/21-3 a kill at any point of "+name+" leaves programs of one version, and the next one completes", func(t *testing.T) {
			killed, seen := 0, map[string]int{}
			for ; ; killed++ {
				to := start(t)
				os.MkdirAll(to.Lib(), 0o755)
				cmd := exec.Command(strace, "-qq", "-o", os.DevNull, "-e", "trace="+changing, "-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", changing, killed+1), os.Args[0])
				cmd.Env = append(os.Environ(), baseVariable+"="+base, prefixVariable+"="+to.Prefix)
				if out, err := cmd.CombinedOutput(); err == nil {
					break
				} else if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
					t.Fatalf("%v, %s", err, out)
				}
				got := pair(t, to)
				seen[got]++
				if got != old && got != new && !(name == "a first installation" && strings.HasSuffix(got, "none")) {
					t.Fatalf("killed before system call %d: %s", killed+1, got)
				}
				if err := upgradeTo(t.Context(), base, to); err != nil || versions(t, to) != new {
					t.Fatalf("killed before system call %d, then %v, %s", killed+1, err, versions(t, to))
				}
			}
			t.Logf("%d kills: %v", killed, seen)
			if killed < 30 || seen[new] == 0 {
				t.Errorf("%d kills, %v: some parts of an upgrade were not reached", killed, seen)
			}
		})
	}
}

// pair returns what the programs print, or "none" for one that does not exist.
func pair(t *testing.T, i installation.Installation) string {
	if _, err := os.Stat(filepath.Join(i.Prefix, "bin/lashd")); err != nil {
		return "none"
	}
	return versions(t, i)
}

// age makes all releases and temporary directories look abandoned.
func age(t *testing.T, i installation.Installation) {
	t.Helper()
	entries, err := os.ReadDir(i.Lib())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		before := time.Now().Add(-2 * time.Hour)
		if err := os.Chtimes(filepath.Join(i.Lib(), e.Name()), before, before); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOwnerOfPrograms(t *testing.T) {
	for path, want := range map[string]string{
		"/opt/homebrew/Cellar/lash/0.1.0/bin/lash": "Homebrew installed /opt/homebrew/Cellar/lash/0.1.0/bin/lash; upgrade it with: brew upgrade lash",
		"/nix/store/abc-lash/bin/lash":             "nix profile upgrade lash",
		"/usr/bin/lash":                            "upgrade it with the package manager",
		"/home/ann/go/bin/lash":                    "CGO_ENABLED=0 go install ./cmd/...",
	} {
		t.Run("issue/21-3 an upgrade says what to do with "+path, func(t *testing.T) {
			if _, err := Installed(path); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
	t.Run("issue/21-3 a program of a release belongs to the prefix where its links lead", func(t *testing.T) {
		to, link := installed(t), filepath.Join(t.TempDir(), "lash")
		if err := os.Symlink(filepath.Join(to.Prefix, "bin/lash"), link); err != nil {
			t.Fatal(err)
		}
		if got, err := Installed(link); err != nil || got != to {
			t.Errorf("%q, %v, want %q", got, err, to)
		}
		if got, want := installation.Stable(link), filepath.Join(to.Lib(), "current/bin/lash"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
