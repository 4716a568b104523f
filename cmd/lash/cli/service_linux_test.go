package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestService(t *testing.T) {
	p := newPlace(t)
	bin := t.TempDir()
	script := "#!/bin/sh\ncase $* in *is-active*) echo active;; esac\n"
	if err := os.WriteFile(filepath.Join(bin, "systemctl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	config := t.TempDir()
	p.environ = append(p.environ, "PATH="+bin+":"+programs+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME="+config)
	file := filepath.Join(config, "systemd/user/lashd.service")
	t.Run("issue/21-3 a service that is not installed is reported with what to do", func(t *testing.T) {
		p.want(1, "", "the service is not installed: there is no "+file+"; to install it: lash service install", "service", "status")
	})
	t.Run("issue/21-3 the service starts lashd beside lash, with this data directory", func(t *testing.T) {
		p.want(0, "Installed "+file+". lashd runs, and starts at login.", "", "service", "install")
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "lashd\" serve\n") || !strings.Contains(string(text), "\"LASHD_HOME=") {
			t.Errorf("%v, %s", err, text)
		}
		p.want(0, file+": active\n", "", "service", "status")
	})
	t.Run("issue/21-3 a removal says that data stays", func(t *testing.T) {
		p.want(0, "stays. lash starts lashd when it needs it.", "", "service", "remove")
		p.want(0, "The service is not installed.", "", "service", "remove")
	})
}
