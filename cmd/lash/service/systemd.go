package service

import (
	"fmt"
	"path/filepath"
	"strings"
)

// systemd returns the service of a user whose configuration is in config.
func systemd(config string) Service {
	return Service{
		File: filepath.Join(config, "systemd", "user", "lashd.service"), text: unit, manager: "systemd",
		probe: user("show-environment"), enable: user("enable", "lashd.service"), start: user("start", "lashd.service"),
		restart: user("restart", "lashd.service"), state: user("is-active", "lashd.service"),
		disable: user("disable", "--now", "lashd.service"), forget: user("daemon-reload"),
	}
}

// user returns a command for the manager of the user.
func user(words ...string) command { return append(command{"systemctl", "--user"}, words...) }

// unitText is the unit. A daemon that finds the data directory in use exits with 75; another start would find the same. Only the daemon
// gets SIGTERM: it ends its commands itself, which are in a cgroup below that of the unit.
const unitText = `# Written by lash service install. Each installation overwrites this file; put changes into
# lashd.service.d/override.conf, with: systemctl --user edit lashd
[Unit]
Description=lashd, a daemon that runs LLM agents
Documentation=man:lashd(1)

[Service]
ExecStart=%s serve
Environment=%s
Environment=%s
Environment=%s
StandardOutput=append:%s
StandardError=append:%s
Restart=on-failure
RestartSec=2
RestartPreventExitStatus=2 65 66 75
KillMode=mixed
Delegate=yes

[Install]
WantedBy=default.target
`

// unit returns the unit file.
func unit(d Daemon) (string, error) {
	for _, value := range []string{d.Program, d.Home, d.Socket, d.Log, d.Path} {
		if strings.ContainsAny(value, "\n\r\x00") {
			return "", fmt.Errorf("%q has a line break, which a systemd unit cannot contain", value)
		}
	}
	log := strings.ReplaceAll(d.Log, "%", "%%")
	return fmt.Sprintf(unitText, quoted(d.Program), quoted("LASHD_HOME="+d.Home), quoted("LASHD_SOCKET="+d.Socket),
		quoted("PATH="+d.Path), log, log), nil
}

// quoted quotes a word of a unit file.
func quoted(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(word) + `"`
}
