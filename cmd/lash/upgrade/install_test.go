//go:build unix

package upgrade

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"lashd/test/wait"
)

// thisSystem is the system for which install.sh downloads an archive here.
const thisSystem = runtime.GOOS + "_" + runtime.GOARCH

// installer returns a command that runs install.sh. Programs in before come first in its PATH.
func installer(t *testing.T, base, prefix, before string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "../../../scripts/install.sh")
	cmd.Env = []string{"HOME=" + t.TempDir(), "PREFIX=" + prefix, "LASH_BASE_URL=" + base, "PATH=" + before + ":" + os.Getenv("PATH")}
	return cmd
}

// prefixed returns a prefix with both programs of version 0.1.0 in bin.
func prefixed(t *testing.T) (prefix, bin string) {
	t.Helper()
	prefix = t.TempDir()
	bin = filepath.Join(prefix, "bin")
	if err := os.Rename(installed(t), bin); err != nil {
		t.Fatal(err)
	}
	return prefix, bin
}

func TestInstall(t *testing.T) {
	content := release(t, thisSystem)
	base := published(t, thisSystem, content, serving(content))
	t.Run("part/12 install.sh installs both programs and says what to do about PATH", func(t *testing.T) {
		prefix := filepath.Join(t.TempDir(), "a directory")
		out, err := installer(t, base, prefix, "/none").CombinedOutput()
		bin := filepath.Join(prefix, "bin")
		want := "Installed lash and lashd 0.2.0 in " + bin + ".\n" + bin + " is not in your PATH. Add this line to the configuration of your shell, such as ~/.profile:\n  export PATH=\"" + bin + ":$PATH\"\n"
		if err != nil || string(out) != want {
			t.Errorf("%v, %q, want %q", err, out, want)
		}
		if got, files := versions(t, bin), left(t, bin); got != new || len(files) != 2 {
			t.Errorf("%s, %q", got, files)
		}
		if text, err := os.ReadFile(filepath.Join(prefix, "share/bash-completion/completions/lash")); err != nil || string(text) != "complete" {
			t.Errorf("completions %q, %v", text, err)
		}
	})
	t.Run("part/12 install.sh replaces older programs, and finds them in PATH", func(t *testing.T) {
		prefix, bin := prefixed(t)
		out, err := installer(t, base+"/", prefix, bin).CombinedOutput()
		if want := "Installed lash and lashd 0.2.0 in " + bin + ".\nTo start: lash login, then lash chat.\n"; err != nil || string(out) != want {
			t.Errorf("%v, %q, want %q", err, out, want)
		}
		if got, files := versions(t, bin), left(t, bin); got != new || len(files) != 2 {
			t.Errorf("%s, %q", got, files)
		}
	})
	t.Run("part/12 install.sh says if another lash comes first in PATH", func(t *testing.T) {
		prefix, bin := prefixed(t)
		other := installed(t)
		out, err := installer(t, base, prefix, other+":"+bin).CombinedOutput()
		if want := "Note: the command lash runs " + other + "/lash, which comes first in your PATH.\n"; err != nil || !strings.HasSuffix(string(out), want) {
			t.Errorf("%v, %q, want %q", err, out, want)
		}
	})
	t.Run("part/12 install.sh reads itself before it runs: a script that is cut does nothing", func(t *testing.T) {
		text, err := os.ReadFile("../../../scripts/install.sh")
		if err != nil {
			t.Fatal(err)
		}
		prefix, bin := prefixed(t)
		for _, size := range []int{len(text) / 3, len(text) / 2, len(text) * 4 / 5} {
			cmd := installer(t, base, prefix, "/none")
			cmd.Args, cmd.Stdin = []string{"sh"}, strings.NewReader(string(text[:size]))
			cmd.Run() // it may fail or succeed
			if got := versions(t, bin); got != old {
				t.Errorf("%d bytes: %s", size, got)
			}
		}
	})
}

func TestFailedInstall(t *testing.T) {
	good := release(t, thisSystem)
	for name, x := range map[string]struct {
		content []byte
		answer  http.HandlerFunc
		want    string
	}{
		"the checksum is wrong": {good, serving(good[1:]), "the checksum of lash_0.2.0_" + thisSystem + ".tar.gz is wrong: it is "},
		"the download is cut": {good, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(good)))
			w.Write(good[:len(good)/2])
		}, "cannot download "},
		"the archive is not found":        {good, http.NotFound, "cannot download "},
		"a program is missing":            {archive(t, thisSystem, map[string]string{"lash": program("lash", "0.2.0")}), nil, "the archive has no program lashd"},
		"a program does not run here":     {archive(t, thisSystem, map[string]string{"lash": "#!/none", "lashd": program("lashd", "0.2.0")}), nil, "the new lash does not run on this machine"},
		"a program is of another version": {archive(t, thisSystem, map[string]string{"lash": program("lash", "0.2.0"), "lashd": program("lashd", "0.1.0")}), nil, "the new lashd says that it is 'lashd 0.1.0', not 0.2.0"},
	} {
		t.Run("part/12 install.sh leaves the old programs if "+name, func(t *testing.T) {
			if x.answer == nil {
				x.answer = serving(x.content)
			}
			prefix, bin := prefixed(t)
			out, err := installer(t, published(t, thisSystem, x.content, x.answer), prefix, bin).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "install.sh: "+x.want) || !strings.HasSuffix(string(out), "; nothing was changed\n") {
				t.Errorf("%v, %q, want %q", err, out, x.want)
			}
			if got, files := versions(t, bin), left(t, bin); got != old || len(files) != 2 {
				t.Errorf("%s, %q", got, files)
			}
		})
	}
	t.Run("part/12 install.sh refuses what it cannot do", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		other := published(t, "plan9_mips", good, nil)
		for _, x := range []struct{ base, prefix, want string }{
			{"http://192.0.2.1", t.TempDir(), "install.sh: http://192.0.2.1 is not an https URL; releases are downloaded over https only\n"},
			{other, file, "install.sh: cannot write to " + file + "/bin; set PREFIX to a directory of yours\n"},
			{other, t.TempDir(), "install.sh: checksums.txt at " + other + " has no archive for " + thisSystem + "; build lash from source\n"},
		} {
			out, err := installer(t, x.base, x.prefix, "/none").CombinedOutput()
			if err == nil || string(out) != x.want {
				t.Errorf("%v, %q, want %q", err, out, x.want)
			}
		}
	})
}

func TestKilledInstall(t *testing.T) {
	t.Run("part/12 after a kill between the two programs both work, and install.sh completes it", func(t *testing.T) {
		content := release(t, thisSystem)
		base := published(t, thisSystem, content, serving(content))
		prefix, bin := prefixed(t)
		// A mv that stops before it moves lash.
		slow := t.TempDir()
		reached := filepath.Join(slow, "reached")
		script := "#!/bin/sh\ncase $3 in */lash) touch '" + reached + "'; exec sleep 600;; esac\nPATH=${PATH#*:}\nexec mv \"$@\"\n"
		if err := os.WriteFile(filepath.Join(slow, "mv"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := installer(t, base, prefix, slow)
		ownGroup(cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "it is about to replace lash", func() bool { _, err := os.Stat(reached); return err == nil })
		killGroup(cmd)
		if got := versions(t, bin); got != "lash 0.1.0, lashd 0.2.0" {
			t.Error(got)
		}
		if out, err := installer(t, base, prefix, bin).CombinedOutput(); err != nil || versions(t, bin) != new {
			t.Errorf("%v, %q", err, out)
		}
	})
}

// ownGroup makes cmd the leader of a process group, so that killGroup reaches what it runs.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) {
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	cmd.Wait()
}
