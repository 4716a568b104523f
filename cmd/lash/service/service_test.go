//go:build unix

package service

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// daemon has characters with a meaning in units and property lists.
var daemon = Daemon{Program: `/home/a b/50%/"x"\$y/lashd`, Home: "/home/a b/data & <more>", Socket: "/run/s", Log: "/home/a b/lashd 1%.log", Path: "/bin:/usr/bin"}

// managed puts a service manager into PATH that records its commands and fails for those that contain failing.
func managed(t *testing.T, name, failing string) (commands func() string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := "#!/bin/sh\necho " + name + " \"$@\" >> '" + log + "'\ncase \"$*\" in\n*'" + failing + "'*) echo it failed >&2; exit 1;;\n*is-active*) echo active;;\n*print*) printf 'x = {\\n\\tstate = running\\n}\\n';;\nesac\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		text, err := os.ReadFile(log)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		os.Remove(log)
		return string(text)
	}
}

func TestSystemd(t *testing.T) {
	s := systemd(t.TempDir())
	t.Run("issue/21-3 the unit of systemd is written, enabled and started", func(t *testing.T) {
		commands := managed(t, "systemctl", "nothing fails")
		if err := s.Install(t.Context(), daemon, true); err != nil || !s.Installed() {
			t.Error(err)
		}
		want := "systemctl --user show-environment\nsystemctl --user enable lashd.service\nsystemctl --user start lashd.service\n"
		if got := commands(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		text, err := os.ReadFile(s.File)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"\nExecStart=\"/home/a b/50%%/\\\"x\\\"\\\\$y/lashd\" serve\n", "\nEnvironment=\"LASHD_HOME=/home/a b/data & <more>\"\n",
			"\nEnvironment=\"PATH=/bin:/usr/bin\"\n", "\nRestart=on-failure\n", "\nStandardError=append:/home/a b/lashd 1%%.log\n", "\nWantedBy=default.target\n",
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%q is missing in %s", want, text)
			}
		}
	})
	t.Run("issue/21-3 the state is what systemd says", func(t *testing.T) {
		managed(t, "systemctl", "nothing fails")
		if state, err := s.State(t.Context()); err != nil || state != "active" {
			t.Errorf("%q, %v", state, err)
		}
	})
	t.Run("issue/21-3 a daemon that runs is not touched", func(t *testing.T) {
		commands := managed(t, "systemctl", "nothing fails")
		if err := s.Install(t.Context(), daemon, false); err != nil || strings.Contains(commands(), " start ") {
			t.Error(err)
		}
	})
	t.Run("issue/21-3 the unit stays if systemd does not stop it", func(t *testing.T) {
		managed(t, "systemctl", "disable")
		if err := s.Remove(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "disable --now lashd.service: exit status 1: it failed") || !s.Installed() {
			t.Error(err)
		}
	})
	t.Run("issue/21-3 a removal stops the service and removes only its file", func(t *testing.T) {
		commands := managed(t, "systemctl", "nothing fails")
		if err := s.Remove(t.Context()); err != nil || s.Installed() {
			t.Error(err)
		}
		want := "systemctl --user show-environment\nsystemctl --user disable --now lashd.service\nsystemctl --user daemon-reload\n"
		if got := commands(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
	t.Run("issue/21-3 without systemd the unit is written, and the error says so", func(t *testing.T) {
		managed(t, "systemctl", "show-environment")
		s := systemd(t.TempDir())
		if err := s.Install(t.Context(), daemon, true); !errors.Is(err, ErrNoManager) || !strings.Contains(err.Error(), "it failed") || !s.Installed() {
			t.Error(err)
		}
		if want := "systemctl --user enable lashd.service && systemctl --user start lashd.service"; s.Later() != want {
			t.Errorf("%q, want %q", s.Later(), want)
		}
		if err := s.Remove(t.Context()); err != nil || s.Installed() {
			t.Error(err)
		}
	})
	t.Run("issue/21-3 a path with a line break is rejected, and nothing is written", func(t *testing.T) {
		s := systemd(t.TempDir())
		if err := s.Install(t.Context(), Daemon{Home: "/a\nExecStart=/evil"}, true); err == nil || s.Installed() {
			t.Error(err)
		}
	})
	t.Run("issue/21-3 systemd accepts the unit", func(t *testing.T) {
		analyze, err := exec.LookPath("systemd-analyze")
		if err != nil {
			t.Log("systemd-analyze is not installed")
			return
		}
		program := filepath.Join(t.TempDir(), "a 50% $program")
		d := Daemon{Program: program, Home: "/home/a b", Socket: "/run/s", Log: "/home/a b/log", Path: "/bin"}
		text, err := unit(d)
		file := filepath.Join(t.TempDir(), "lashd.service")
		if err := errors.Join(err, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(analyze, "--user", "--man=no", "verify", file)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v: %s", err, out)
		}
	})
}

func TestLaunchd(t *testing.T) {
	home := filepath.Join(t.TempDir(), "a user")
	s := launchd(home, 501)
	t.Run("issue/21-3 the agent of launchd is written, enabled and started", func(t *testing.T) {
		commands := managed(t, "launchctl", "nothing fails")
		if err := s.Install(t.Context(), daemon, true); err != nil {
			t.Error(err)
		}
		want := "launchctl print gui/501\nlaunchctl enable gui/501/lashd\nlaunchctl bootstrap gui/501 " + home + "/Library/LaunchAgents/lashd.plist\n"
		if got := commands(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if want := "launchctl bootstrap gui/501 '" + s.File + "'"; s.Start() != want {
			t.Errorf("%q, want %q", s.Start(), want)
		}
		if state, err := s.State(t.Context()); err != nil || state != "running" {
			t.Errorf("%q, %v", state, err)
		}
	})
	t.Run("issue/21-3 the agent has the paths and the environment", func(t *testing.T) {
		file, err := os.Open(s.File)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		want := []string{"Label", "lashd", "ProgramArguments", daemon.Program, "serve", "EnvironmentVariables", "LASHD_HOME", daemon.Home, "LASHD_SOCKET", daemon.Socket,
			"PATH", daemon.Path, "RunAtLoad", "KeepAlive", "SuccessfulExit", "StandardOutPath", daemon.Log, "StandardErrorPath", daemon.Log}
		if diff := cmp.Diff(want, texts(t, file)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("issue/21-3 an agent that is not loaded is removed", func(t *testing.T) {
		commands := managed(t, "launchctl", "print gui/501/lashd")
		if err := s.Remove(t.Context()); err != nil || s.Installed() || strings.Contains(commands(), "bootout") {
			t.Error(err)
		}
	})
}

// texts returns the texts in an XML document.
func texts(t *testing.T, from io.Reader) (all []string) {
	t.Helper()
	for decoder := xml.NewDecoder(from); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			all = append(all, string(text))
		}
	}
}
