package service

import (
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"
)

// label is the name of the agent of launchd.
const label = "lashd"

// launchd returns the service of a user with that home directory.
func launchd(home string, uid int) Service {
	file := filepath.Join(home, "Library", "LaunchAgents", label+".plist")
	domain := fmt.Sprintf("gui/%d", uid)
	target := domain + "/" + label
	return Service{
		File: file, text: agent, manager: "launchd",
		probe: launchctl("print", domain), enable: launchctl("enable", target), start: launchctl("bootstrap", domain, file),
		restart: launchctl("kickstart", "-k", target), state: launchctl("print", target), loaded: launchctl("print", target),
		disable: launchctl("bootout", target),
	}
}

func launchctl(words ...string) command { return append(command{"launchctl"}, words...) }

// agentText is the agent. launchd starts it at login, and again after a failure, at most every ten seconds.
const agentText = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>` + label + `</string>
	<key>ProgramArguments</key>
	<array>
		<string>%s</string>
		<string>serve</string>
	</array>
	<key>EnvironmentVariables</key>
	<dict>
		<key>LASHD_HOME</key>
		<string>%s</string>
		<key>LASHD_SOCKET</key>
		<string>%s</string>
		<key>PATH</key>
		<string>%s</string>
	</dict>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>StandardOutPath</key>
	<string>%s</string>
	<key>StandardErrorPath</key>
	<string>%s</string>
</dict>
</plist>
`

// agent returns the property list of the agent.
func agent(d Daemon) (string, error) {
	var values []any
	for _, value := range []string{d.Program, d.Home, d.Socket, d.Path, d.Log, d.Log} {
		var b strings.Builder
		if err := xml.EscapeText(&b, []byte(value)); err != nil {
			return "", err
		}
		values = append(values, b.String())
	}
	return fmt.Sprintf(agentText, values...), nil
}
